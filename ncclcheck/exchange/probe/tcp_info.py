"""What the kernel counted on a connection of ours: packets with data, packets sent again, and its own round trips."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing

# struct tcp_info of linux/tcp.h, which only ever grows at its end; the kernel returns as much of it as it knows.
_TOTAL_RETRANS = struct.Struct("=100xI")
_MIN_RTT = struct.Struct("=148xI")  # Linux 4.6
_DATA_SEGS_OUT = struct.Struct("=156xI")  # Linux 4.6
_DSACK_DUPS = struct.Struct("=216xI")  # Linux 4.19
_MOST_BYTES = 512
_NO_ROUND_TRIP = 0xFFFFFFFF
_UNKNOWN = Missing("unsupported", "this kernel does not count the packets of a connection (TCP_INFO)")
_NO_RTT = Missing("unsupported", "this kernel does not time the round trips of a connection (TCP_INFO)")


class Segments(Struct, frozen=True, forbid_unknown_fields=True):
    """The packets with data that one end sent, how many were sent again, and how many of these in vain.

    In vain (`needless`): the receiver says that it had the packet already (a duplicate SACK, RFC 2883), so what got
    lost or late was its acknowledgement.
    """

    sent: int = 0
    resent: int = 0
    needless: int = 0

    @property
    def lost(self) -> int:
        """Return how many packets did not arrive."""
        return max(self.resent - self.needless, 0)


def segments_of(connections: Iterable[socket.socket]) -> Fact[Segments]:
    """Return what this end has sent on these connections; also of one that was reset, before it is closed."""
    total = Segments()
    for connection in connections:
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOST_BYTES)
        except OSError as error:
            return Missing("error", f"TCP_INFO: {error.strerror}")
        if len(info) < _DATA_SEGS_OUT.size:
            return _UNKNOWN
        needless = _DSACK_DUPS.unpack_from(info)[0] if len(info) >= _DSACK_DUPS.size else 0
        total = Segments(
            total.sent + _DATA_SEGS_OUT.unpack_from(info)[0],
            total.resent + _TOTAL_RETRANS.unpack_from(info)[0],
            total.needless + needless,
        )
    return total


def kernel_round_trip_us(connection: socket.socket) -> Fact[float]:
    """Return the quickest round trip that the kernel itself saw on the connection, in us (tcpi_min_rtt).

    The peer's kernel acknowledges a packet before any process is woken up (the SYN always), so no busy process or core
    makes it late: it is the network's.
    """
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOST_BYTES)
    except OSError as error:
        return Missing("error", f"TCP_INFO: {error.strerror}")
    if len(info) < _MIN_RTT.size:
        return _NO_RTT
    least_us: int = _MIN_RTT.unpack_from(info)[0]
    return _NO_RTT if least_us == _NO_ROUND_TRIP else float(least_us)
