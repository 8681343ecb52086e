"""The lines of a soak's file: one document each, and what a crash may leave of the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncclcheck.model.benchmarks.soak import SoakLine
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError

LONGEST_LINE = 4 << 20


def line_of(line: SoakLine) -> bytes:
    """Return the line as it is written, with its end."""
    return encode(line) + b"\n"


def read_lines(lines: Iterable[bytes]) -> Iterator[SoakLine | None]:
    """Yield what each line says; None for one that is damaged. A last line without its end was never finished."""
    for line in lines:
        if not line.endswith(b"\n"):
            continue
        try:
            yield decode(line, SoakLine, limit_bytes=LONGEST_LINE)  # type: ignore[arg-type]
        except DecodeError:
            yield None
