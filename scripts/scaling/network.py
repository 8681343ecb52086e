"""A network namespace in which one address range belongs to this machine, so that thousands of nodes have addresses."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import subprocess
from pathlib import Path

FIRST = ipaddress.ip_address("10.64.0.1")  # node 0; node n has the n-th address after it
NETWORK = ipaddress.ip_network("10.64.0.0/16")
INTERFACE = "eth0"
_CLONE_NEWNET = 0x40000000


def enter() -> None:
    """Leave for a new network namespace: `eth0` has node 0's address, the kernel answers for all others of the range.

    Raises OSError where that is not allowed (it needs root), CalledProcessError where `ip` fails.
    """
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    lines = [
        "link set lo up",
        f"link add {INTERFACE} type veth peer name switch",
        f"addr add {FIRST}/{NETWORK.prefixlen} dev {INTERFACE}",
        "link set switch up",
        f"link set {INTERFACE} up",
        f"route add local {NETWORK} dev lo",
    ]
    text = "".join(f"{line}\n" for line in lines)
    subprocess.run(["/usr/bin/env", "ip", "-batch", "-"], input=text, text=True, check=True, timeout=30)


def address_of(node_rank: int) -> str:
    """Return the address of that node."""
    return str(FIRST + node_rank)


def rank_at(address: str) -> int:
    """Return the node that has that address."""
    return int(ipaddress.ip_address(address.removeprefix("::ffff:"))) - int(FIRST)


def bytes_on_wire() -> int:
    """Return the bytes that this namespace has sent so far, headers included: every connection crosses `lo`."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[8])
    return 0
