"""Child process: opens RDMA devices through libibverbs and prints what it says of their ports, each as it comes.

Arguments: the library, then `mlx5_0:1` for each port. A line of JSON for each: {"port", "active_mtu"}, or {"port",
"why", "detail"}. A device that hangs or crashes takes the rest with it; what was printed stays.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from typing import Any

_ATTRIBUTES_BYTES = 512  # more than struct ibv_port_attr of any version has
# verbs.h, enum ibv_mtu: IBV_MTU_256 is 1, IBV_MTU_4096 is 5.
_MTU_BYTES = {number: 128 << number for number in range(1, 6)}


class _PortAttributes(ctypes.Structure):
    """The beginning of struct ibv_port_attr (verbs.h), the same in every version."""

    _fields_ = (
        ("state", ctypes.c_int),
        ("max_mtu", ctypes.c_int),
        ("active_mtu", ctypes.c_int),
        ("rest", ctypes.c_char * _ATTRIBUTES_BYTES),
    )


def main() -> None:
    """Open each device once, and query each of its ports that was asked for."""
    try:
        verbs = _loaded(sys.argv[1])
    except (OSError, AttributeError) as error:
        for port in sys.argv[2:]:
            _say(port=port, why="error", detail=f"libibverbs: {error}"[:300])
        return
    devices = _devices(verbs)
    contexts: dict[str, Any] = {}
    for port in sys.argv[2:]:
        name, _, number = port.partition(":")
        if name not in devices:
            _say(port=port, why="absent", detail=f"libibverbs lists no {name}")
            continue
        if name not in contexts:
            ctypes.set_errno(0)
            contexts[name] = verbs.ibv_open_device(devices[name]) or ctypes.get_errno() or errno.EIO
        _say(port=port, **_asked(verbs, contexts[name], int(number)))


def _say(**line: object) -> None:
    """Write one line past all buffers: the next device may end this process."""
    os.write(1, json.dumps(line).encode() + b"\n")


def _loaded(path: str) -> Any:
    """Return the library with the types of what is called: verbs.h."""
    verbs = ctypes.CDLL(path, mode=os.RTLD_NOW, use_errno=True)
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_list.argtypes = (ctypes.POINTER(ctypes.c_int),)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = (ctypes.c_void_p,)
    verbs.ibv_open_device.restype = ctypes.c_void_p
    verbs.ibv_open_device.argtypes = (ctypes.c_void_p,)
    verbs.ibv_query_port.restype = ctypes.c_int
    verbs.ibv_query_port.argtypes = (ctypes.c_void_p, ctypes.c_uint8, ctypes.POINTER(_PortAttributes))
    return verbs


def _devices(verbs: Any) -> dict[str, Any]:
    count = ctypes.c_int()
    listed = verbs.ibv_get_device_list(ctypes.byref(count))
    found = {}
    for place in range(count.value if listed else 0):
        name = verbs.ibv_get_device_name(listed[place])
        found[(name or b"").decode("utf-8", "replace")] = listed[place]
    return found


def _asked(verbs: Any, context: Any, number: int) -> dict[str, object]:
    """Return the MTU, or why there is none. A context below 4096 is the errno with which the device refused."""
    if context < 4096:  # noqa: PLR2004 - the first page is never mapped
        why = "denied" if context in (errno.EACCES, errno.EPERM) else "error"
        return {"why": why, "detail": f"the device cannot be opened: {os.strerror(context)}"}
    attributes = _PortAttributes()
    failed = verbs.ibv_query_port(context, number, ctypes.byref(attributes))
    if failed:
        return {"why": "error", "detail": f"ibv_query_port: {os.strerror(abs(failed))}"}
    if attributes.active_mtu not in _MTU_BYTES:
        return {"why": "error", "detail": f"ibv_query_port: MTU {attributes.active_mtu} is not known"}
    return {"active_mtu": _MTU_BYTES[attributes.active_mtu]}


if __name__ == "__main__":
    main()
