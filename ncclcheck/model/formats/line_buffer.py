"""Lines of a stream that comes in pieces."""

from __future__ import annotations

from ncclcheck.model.errors import DecodeError

LINE_LIMIT_BYTES = 8 * 1024 * 1024


class LineBuffer:
    """Whole lines of what comes in pieces. State: the piece that has no end yet."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._rest, self._limit_bytes = bytearray(), limit_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are whole now, without their ends. Raises DecodeError for one without end."""
        self._rest += data
        if b"\n" not in data:  # a long line comes in many pieces: what was there is not looked through again
            self._refuse_long(len(self._rest))
            return []
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        self._refuse_long(len(rest))
        return [bytes(line) for line in lines]

    def _refuse_long(self, size_bytes: int) -> None:
        if size_bytes > self._limit_bytes:
            raise DecodeError(f"a line of more than {self._limit_bytes} bytes")
