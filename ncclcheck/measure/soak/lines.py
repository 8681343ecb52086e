"""The lines of a soak's file: one document each, and what a crash may leave of the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncclcheck.measure.soak.soak_limits import soak_faults
from ncclcheck.model.benchmarks.soak import NodeCounts, SoakEnd, SoakLine, SoakStart
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError

LONGEST_LINE = 4 << 20
MOST_LINES = 2_000_000  # blocks of 10 s in 231 days
_MOST_DAMAGED = 10_000  # lines, where the sound ones are fewer
_LAST_MOMENT = 1e11  # Unix time in the year 5138, which a date can still hold
_LONGEST = 1e6  # seconds of a block
_LEAST_US = 1e-3
_MOST = 1e13  # microseconds, iterations, elements
_MOST_STEP = 2000  # of the histogram of times: 1.04 ** 2000 microseconds
_MOST_COUNT = 1 << 64


def line_of(line: SoakLine) -> bytes:
    """Return the line as it is written, with its end."""
    return encode(line) + b"\n"


def read_lines(lines: Iterable[bytes]) -> Iterator[SoakLine | None]:
    """Yield what each line says; None for one that is damaged. A last line without its end was never finished."""
    for line in lines:
        if not line.endswith(b"\n"):
            continue
        try:
            found: SoakLine = decode(line, SoakLine, limit_bytes=LONGEST_LINE)  # type: ignore[arg-type]
        except DecodeError:
            yield None
            continue
        yield found if is_sound(found) else None


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file that is read in parts. Raises ValueError where one is longer than a soak writes."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in whole)
        if len(rest) > LONGEST_LINE:
            raise ValueError(f"a line is longer than {LONGEST_LINE >> 20} MiB, which no soak writes")
    if rest:
        yield rest


def bounded_lines(lines: Iterable[SoakLine | None]) -> Iterator[SoakLine | None]:
    """Yield the lines. Raises ValueError where they are more than any soak writes, or most of many are damaged."""
    damaged = 0
    for number, line in enumerate(lines, 1):
        damaged += line is None
        if damaged > _MOST_DAMAGED and damaged > number / 2:
            raise ValueError(f"{damaged} of {number} lines are damaged: no soak has written it")
        if number > MOST_LINES:
            raise ValueError(f"more than {MOST_LINES} lines, which no soak writes")
        yield line


def is_sound(line: SoakLine) -> bool:
    """Return whether its values can be: nothing else is judged, wherever it comes from."""
    if not 0 <= line.at_s < _LAST_MOMENT:
        return False
    if isinstance(line, SoakEnd):
        return True
    if isinstance(line, SoakStart):
        return not any(soak_faults(line.plan)) and bool(line.hosts and line.ops) and line.size_bytes > 0
    numbers = (line.number, line.iterations, line.wrong, *line.wrong_ranks, *line.times.values())
    reals = (
        line.seconds,
        line.worst_us,
        *(pair.gbit_s for pair in line.pairs),
        *(pair.waited for pair in line.pairs),
        *(time_us for tail in line.tails for time_us in (tail.time_us, tail.by_us)),
    )
    return (
        all(0 <= number < _MOST for number in numbers)
        and all(0 <= real < _MOST for real in reals)
        and line.seconds < _LONGEST
        and (line.iterations == 0 or _LEAST_US <= line.median_us < _MOST)
        and all(abs(step) < _MOST_STEP for step in line.times)
        and all(pair.waited <= 1 for pair in line.pairs)
        and all(tail.rank is None or tail.rank >= 0 for tail in line.tails)
        and all(map(is_sound_of_node, line.nodes))
    )


def is_sound_of_node(node: NodeCounts) -> bool:
    """Return the same for the counters of a node."""
    counts = all(0 <= count < _MOST_COUNT for count in node.counts.values())
    return (
        counts
        and 0 <= node.steal <= 1
        and 0 <= node.waited <= 1
        and 0 <= node.clock_mhz < _MOST
        and 0 <= node.temperature_c < _MOST
        and node.carriers >= 0
    )
