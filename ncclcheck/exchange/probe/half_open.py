"""Connections that arrived here while the caller never got our answer: which direction of a path is blocked.

A rule that drops all packets from B to A, not only new connections, stops both from connecting: B's calls do not
arrive, and the answers to A's calls neither. The kernel of B tells the two apart: A's SYN is there, unfinished
(state SYN_RECV in /proc/net/tcp, Documentation/networking/proc_net_tcp.rst; readable by everybody).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator
from pathlib import Path

_SYN_RECV = "03"
_COLUMNS = 4


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
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) < _COLUMNS or words[3] != _SYN_RECV:
            continue
        if int(words[1].rpartition(":")[2], 16) in ports:
            yield _address(words[2].rpartition(":")[0])


def _address(text: str) -> str:
    """Return the address of the kernel's 32-bit words in host order (little-endian wherever NCCL runs)."""
    packed = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
