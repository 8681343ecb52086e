"""Connections that arrived here while the caller never got our answer: which direction of a path is blocked.

A rule that drops all packets from B to A, not only new connections, stops both from connecting: B's calls do not
arrive, and the answers to A's calls neither. The kernel of B tells the two apart: A's SYN is there, unfinished
(state SYN_RECV in /proc/net/tcp, Documentation/networking/proc_net_tcp.rst; readable by everybody).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator
from pathlib import Path

# The row's number, the local address and port, the remote one, the state 03. Searched as a whole: node 0 of thousands
# has as many connections, and looks every quarter of a second.
_SYN_RECV = re.compile(r"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} 03 ", re.MULTILINE)


def half_open(ports: Collection[int]) -> frozenset[str]:
    """Return the remote addresses with an unfinished handshake on one of our ports."""
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        try:
            text = Path("/proc/self/net", table).read_text()
        except OSError:
            continue  # no such family here
        found |= set(_callers(text, ports))
    return frozenset(found)


def _callers(text: str, ports: Collection[int]) -> Iterator[str]:
    for port, address in _SYN_RECV.findall(text):
        if int(port, 16) in ports:
            yield _address(address)


def _address(text: str) -> str:
    """Return the address of the kernel's 32-bit words in host order (little-endian wherever NCCL runs)."""
    packed = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
