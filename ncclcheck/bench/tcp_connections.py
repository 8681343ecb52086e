"""Which peers do not acknowledge what a process sends to them, as the kernel's table of TCP connections says."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LEAST_RETRANSMITS = 2  # one may be chance
# A call is repeated after a second, and again two seconds later: by then a program may have given it up to call anew.
_LEAST_REPEATED_CALLS = 1
_SYN_SENT = "02"  # include/net/tcp_states.h
_FIELDS = 10


def unanswered_peers(pid: int) -> tuple[str, ...]:
    """Return the addresses to which the process sends data or connection attempts again and again, without answer.

    /proc/PID/net/tcp (Linux `Documentation/networking/proc_net_tcp.rst`): the seventh column counts the
    retransmissions of the oldest unacknowledged segment, and is 0 again as soon as something is acknowledged. A peer
    that is merely slow or stopped acknowledges.
    """
    inodes = _socket_inodes(pid)
    found: dict[str, None] = {}
    for name in ("tcp", "tcp6"):
        for peer, state, retransmits, inode in _connections(Path(f"/proc/{pid}/net/{name}")):
            least = _LEAST_REPEATED_CALLS if state == _SYN_SENT else _LEAST_RETRANSMITS
            if inode in inodes and retransmits >= least:
                found[_address(peer)] = None
    return tuple(found)


def _socket_inodes(pid: int) -> set[str]:
    inodes = set()
    with suppress(OSError):  # it ended meanwhile
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    return inodes


def _connections(table: Path) -> Iterator[tuple[str, str, int, str]]:
    """Yield peer address and state as the kernel writes them, retransmissions, and inode of each connection."""
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) >= _FIELDS:
            yield fields[2].partition(":")[0], fields[3], int(fields[6], 16), fields[9]


def _address(text: str) -> str:
    """Return the address of the kernel's notation: words of 32 bits, each in the order of the machine's bytes."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
