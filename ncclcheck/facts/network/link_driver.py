"""Asks the kernel which driver serves a network interface, also where /sys does not say (veth, tun, macvlan)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing

_SIOCGIFFLAGS = 0x8913  # linux/sockios.h
_SIOCGIFMTU = 0x8921
_SIOCGIFHWADDR = 0x8927
_SIOCETHTOOL = 0x8946
_ETHTOOL_GDRVINFO = 3  # linux/ethtool.h
_DRVINFO_BYTES = 196
# The bits of linux/if.h by number, under the names that psutil gives them.
_FLAGS = (
    "up", "broadcast", "debug", "loopback", "pointopoint", "notrailers", "running", "noarp", "promisc", "allmulti",
    "master", "slave", "multicast", "portsel", "automedia", "dynamic",
)  # fmt: skip


def driver_of(name: str) -> Fact[str]:
    """Return the driver name of ETHTOOL_GDRVINFO.

    For a software device without a name of its own the kernel (5.19 and later, net/ethtool/ioctl.c) gives the link
    kind here: "macvlan", "dummy", "ipvlan", ...
    """
    info = array.array("B", struct.pack("I", _ETHTOOL_GDRVINFO) + bytes(_DRVINFO_BYTES - 4))
    address, _ = info.buffer_info()
    request = struct.pack("16sP16x", name.encode("utf-8", "surrogateescape"), address)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            fcntl.ioctl(query, _SIOCETHTOOL, request)
    except OSError as error:
        return missing_for(error, f"driver of {readable(name)}")
    driver = info.tobytes()[4:36].split(b"\0")[0].decode("utf-8", "replace")
    return driver or Missing("absent", "the driver tells no name")


def hardware_type_of(name: str) -> Fact[int]:
    """Return the ARPHRD_ number of the interface, as /sys/class/net/NAME/type gives it."""
    try:
        (hardware_type,) = struct.unpack_from("=H", _asked(name, _SIOCGIFHWADDR), 16)
    except OSError as error:
        return missing_for(error, f"type of {readable(name)}")
    return int(hardware_type)


def flags_of(name: str) -> tuple[str, ...]:
    """Return the flags of the interface by name, "up" and the like. Raises OSError where there is none of that name."""
    (flags,) = struct.unpack_from("=H", _asked(name, _SIOCGIFFLAGS), 16)
    return tuple(word for bit, word in enumerate(_FLAGS) if flags >> bit & 1)


def mtu_of(name: str) -> int:
    """Return the largest packet of the interface. Raises OSError where there is none of that name."""
    (mtu,) = struct.unpack_from("=i", _asked(name, _SIOCGIFMTU), 16)
    return int(mtu)


def _asked(name: str, request: int) -> bytes:
    """Return the kernel's answer to such a request (netdevice(7)), which needs neither /proc nor /sys."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        return fcntl.ioctl(query, request, struct.pack("40s", name.encode("utf-8", "surrogateescape")))
