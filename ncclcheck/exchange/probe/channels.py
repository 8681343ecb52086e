"""Connections that the listener passes on to a measurement, by the caller and the purpose."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from ncclcheck.exchange.deadline import Deadline

MOST_WAITING = 4096  # connections that were not taken yet; more than any plan opens
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: what is still queued is dropped, not sent


class Channels:
    """Connections that arrived, by name and caller's ticket, until they are taken. State by design."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[tuple[str, int], socket.socket] = {}
        self._served: dict[str, Callable[[socket.socket], None]] = {}
        self._closed = False

    def serve(self, prefix: str, answer: Callable[[socket.socket], None]) -> None:
        """Call `answer` with each connection whose name begins so, in a thread of its own."""
        with self._changed:
            self._served[prefix] = answer

    def put(self, name: str, ticket: int, arrived: socket.socket) -> None:
        """Offer the connection; an earlier one of the same name and caller that was not taken is closed."""
        with self._changed:
            answer = next(
                (service for prefix, service in self._served.items() if name.startswith(prefix)), None
            )
            full = self._closed or len(self._waiting) >= MOST_WAITING
            stale = arrived if full else None
            if not full and answer is None:
                stale = self._waiting.pop((name, ticket), None)
                self._waiting[name, ticket] = arrived
            self._changed.notify_all()
        if stale is not None:
            reset(stale)
        elif answer is not None:
            threading.Thread(target=answer, args=(arrived,), name=name, daemon=True).start()

    def take(self, name: str, ticket: int, deadline: Deadline) -> socket.socket | None:
        """Return the connection of that name and caller as soon as it is there; None at the deadline."""
        key = name, ticket
        with self._changed:
            self._changed.wait_for(lambda: key in self._waiting or self._closed, deadline.left())
            return self._waiting.pop(key, None)

    def close(self) -> None:
        """Close the connections that were not taken, and those that still arrive."""
        with self._changed:
            self._closed = True
            left = list(self._waiting.values())
            self._waiting.clear()
            self._changed.notify_all()
        for connection in left:
            reset(connection)


def reset(connection: socket.socket) -> None:
    """Close the connection and drop what is queued on it, so that it does not disturb the next measurement."""
    with suppress(OSError):  # gone already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
    with suppress(OSError):
        connection.close()
