"""One line from a connection, of bounded length and by a deadline: the peer is not known yet."""

from __future__ import annotations

import socket

from ncclcheck.exchange.deadline import Deadline


def receive_line(connection: socket.socket, limit_bytes: int, deadline: Deadline) -> bytes:
    """Return one line, without its end.

    Raises OSError: TimeoutError where it does not come in time, ConnectionResetError where it is longer or has no end.
    """
    data = b""
    while not data.endswith(b"\n"):
        connection.settimeout(max(deadline.left(), 0.001))
        part = connection.recv(limit_bytes)
        if not part or len(data) + len(part) > limit_bytes:
            raise ConnectionResetError("no whole line came")
        data += part
    return data[:-1]
