"""Child process: loads libibverbs by the names that NCCL tries, and prints where the loader found it."""

from __future__ import annotations

import ctypes
import json
import os
import sys

MARK = "ncclcheck-verbs "
NAMES = ("libibverbs.so", "libibverbs.so.1")  # NCCL, src/misc/ibvsymbols.cc, in this order
_ABSENT = "cannot open shared object file: No such file or directory"  # dlerror of glibc


def main() -> None:
    """Print one line: MARK and a JSON object with path, or with detail and whether a broken one was found."""
    answer = _load()
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    os._exit(0)  # no destructors of a library that nothing was done with


def _load() -> dict[str, object]:
    errors: list[str] = []
    for name in NAMES:
        try:
            library = ctypes.CDLL(name, mode=os.RTLD_NOW)
        except OSError as error:
            errors.append(str(error))
            continue
        if hasattr(library, "ibv_get_device_list"):
            return {"path": _path_of(library) or name}
        errors.append(f"{name}: has no ibv_get_device_list")
    absent = [f"{name}: {_ABSENT}" for name in NAMES]
    return {"path": None, "detail": "; ".join(errors)[:1000], "broken": errors != absent}


def _path_of(library: ctypes.CDLL) -> str:
    """Return the file that a function of the library lies in, as dladdr(3) returns it."""

    class Found(ctypes.Structure):
        _fields_ = (
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("symbol", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        )

    found = Found()
    dladdr = getattr(ctypes.CDLL(None), "dladdr", None)
    address = ctypes.cast(library.ibv_get_device_list, ctypes.c_void_p)
    if dladdr is None or not dladdr(address, ctypes.byref(found)):
        return ""
    return (found.file or b"").decode("utf-8", "replace")


if __name__ == "__main__":
    main()
