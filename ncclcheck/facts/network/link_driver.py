"""Asks the kernel which driver serves a network interface, also where /sys does not say (veth, tun, macvlan)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing

_SIOCGIFHWADDR = 0x8927  # linux/sockios.h
_SIOCETHTOOL = 0x8946
_ETHTOOL_GDRVINFO = 3  # linux/ethtool.h
_DRVINFO_BYTES = 196


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
    request = struct.pack("40s", name.encode("utf-8", "surrogateescape"))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            answer = fcntl.ioctl(query, _SIOCGIFHWADDR, request)
    except OSError as error:
        return missing_for(error, f"type of {readable(name)}")
    (hardware_type,) = struct.unpack_from("=H", answer, 16)
    return int(hardware_type)
