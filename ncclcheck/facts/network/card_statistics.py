"""Asks a network card for the statistics that it keeps itself (`ethtool -S`): those that count something wrong."""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct

from ncclcheck.facts.text_files import readable

_SIOCETHTOOL = 0x8946  # linux/sockios.h
_GSSET_INFO, _GSTRINGS, _GSTATS = 0x37, 0x1B, 0x1D  # linux/ethtool.h
_STATS_SET = 1  # ETH_SS_STATS
_NAME_BYTES = 32
_MOST = 8192  # names of one card: the largest have some thousands, most of them per queue
_KEPT = 96
_OF_ERRORS = re.compile(
    r"err|drop|discard|crc|symbol|missed|overrun|underrun|out_of_buffer|no_buf|timeout|link_down|jabber|fragment"
    r"|undersize|oversize|bad_|fcs",
    re.IGNORECASE,
)
# Per queue, they say nothing that the sum does not; and what a filter drops on purpose is no error.
_NO_ERROR = re.compile(r"\d+_|_\d+|\[\d+\]|xdp|filter|vlan|mcast|ptp", re.IGNORECASE)


def card_statistics(name: str) -> dict[str, int]:
    """Return the card's counters of errors and losses by name; none where the driver keeps none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            count = _number_of_statistics(query, name)
            if not 0 < count <= _MOST:
                return {}
            # The kernel writes all that there are by then: a card that is given more queues meanwhile has more.
            room = 2 * count + _MOST
            names = _asked(query, name, struct.pack("III", _GSTRINGS, _STATS_SET, count), _NAME_BYTES * room)
            values = _asked(query, name, struct.pack("II", _GSTATS, count), 8 * room)
    except OSError:
        return {}
    found: dict[str, int] = {}
    for number in range(count):
        text = names[12 + _NAME_BYTES * number :][:_NAME_BYTES].split(b"\0")[0].decode("utf-8", "replace")
        if _OF_ERRORS.search(text) and not _NO_ERROR.search(text) and len(found) < _KEPT:
            found[readable(text.strip())] = struct.unpack_from("=Q", values, 8 + 8 * number)[0]
    return found


def _number_of_statistics(query: socket.socket, name: str) -> int:
    asked = struct.pack("=IIQ", _GSSET_INFO, 0, 1 << _STATS_SET)
    answer = _asked(query, name, asked, 4)
    (mask,) = struct.unpack_from("=Q", answer, 8)
    return int(struct.unpack_from("=I", answer, 16)[0]) if mask else 0


def _asked(query: socket.socket, name: str, request: bytes, room_bytes: int) -> bytes:
    """Return the whole answer of the kernel to a request that is followed by room for so many bytes."""
    block = array.array("B", request + bytes(room_bytes))
    address, _ = block.buffer_info()
    packed = struct.pack("16sP16x", name.encode("utf-8", "surrogateescape"), address)
    fcntl.ioctl(query, _SIOCETHTOOL, packed)
    return block.tobytes()
