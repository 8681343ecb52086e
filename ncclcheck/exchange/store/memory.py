"""A store in the memory of one process: the head node's, which every node reaches through its own ssh connection."""

from __future__ import annotations

import errno
import os
import threading

LIMIT_BYTES = 1 << 30
LIMIT_KEYS = 1 << 20


class MemoryBackend:
    """Values and counters by key. State by design, guarded by a lock."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, bytes] = {}
        self._counts: dict[str, int] = {}
        self._bytes, self._limit_bytes = 0, limit_bytes

    def set(self, key: str, value: bytes) -> None:
        """Store the value. Raises OSError where the store is full."""
        with self._lock:
            size = self._bytes + len(value) - len(self._values.get(key, b""))
            if size > self._limit_bytes or len(self._values) >= LIMIT_KEYS:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._bytes, self._values[key] = size, value

    def add(self, key: str, amount: int) -> int:
        """Add to the counter and return its new value."""
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + amount
            return self._counts[key]

    def read(self, key: str) -> bytes | None:
        """Return the value, or the counter as a number; None while it is not set."""
        with self._lock:
            if key in self._counts:
                return str(self._counts[key]).encode()
            return self._values.get(key)

    def look(self) -> bytes:
        """Return an empty object: there is no place to describe."""
        return b"{}"
