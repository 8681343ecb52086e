"""Reads the folder of a soak: of this run, of one that was killed, or of anybody; nothing in it is believed."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, within
from ncclcheck.measure.soak.lines import bounded_lines, read_lines, whole_lines
from ncclcheck.measure.soak.series_events import SoakJudge
from ncclcheck.model.bench import BenchPlan, BenchResult, RankFailure
from ncclcheck.model.benchmarks.soak import SoakLine, SoakStart
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot

FILE = "blocks.jsonl"
NODES = "nodes.json"
_NODES_BYTES = 1 << 30
_FIRST_LINES = 1000  # in which a series begins
_CHUNK_BYTES = 1 << 20


def has_series(folder: str) -> Fact[bool]:
    """Return whether there is a file of blocks; Missing where that cannot be seen in time."""
    return within(timeouts.USER_FILE_S, os.path.lexists, Path(folder) / FILE)


def lines_in(folder: str) -> Fact[SoakJudge]:
    """Return the series in the folder, judged; Missing where there is none."""
    judge, where = SoakJudge(folder), f"{folder}/{FILE}"
    try:
        with closing(_chunks(Path(folder) / FILE)) as chunks:
            for line in bounded_lines(_read(chunks)):
                judge.feed(line)
    except OSError as error:
        return missing_for(error)
    except ValueError as error:
        return Missing("error", f"{where}: {error}")
    if judge.start is None:
        return Missing("error", f"{where}: no series of a soak begins there")
    return judge


def start_in(folder: str) -> Fact[SoakStart]:
    """Return how the series in the folder begins; Missing where none does."""
    where = f"{folder}/{FILE}"
    try:
        with closing(_chunks(Path(folder) / FILE)) as chunks:
            first = islice(_read(chunks), _FIRST_LINES)
            found = next((line for line in first if isinstance(line, SoakStart)), None)
    except OSError as error:
        return missing_for(error)
    except ValueError as error:
        return Missing("error", f"{where}: {error}")
    return found or Missing("error", f"{where}: no series of a soak begins there")


def nodes_in(folder: str) -> Fact[Snapshot]:
    """Return what was known of the nodes when the soak began."""
    data, where = bytearray(), f"{folder}/{NODES}"
    try:
        with closing(_chunks(Path(folder) / NODES)) as chunks:
            for chunk in chunks:
                data += chunk
                if len(data) > _NODES_BYTES:
                    return Missing("error", f"{where}: more than {_NODES_BYTES >> 20} MiB")
        return decode(bytes(data), Snapshot)
    except OSError as error:
        return missing_for(error)
    except DecodeError as error:
        return Missing("error", f"{where}: {error}")


def _read(chunks: Iterable[bytes]) -> Iterator[SoakLine | None]:
    return read_lines(whole_lines(chunks))


def _chunks(path: Path) -> Generator[bytes]:
    """Yield a regular file in parts, each within a deadline. Raises OSError where it is none, or its mount hangs."""
    opened = within(timeouts.USER_FILE_S, _opened, path)
    if isinstance(opened, Missing):
        raise OSError(f"{path}: {opened.detail}")
    is_held = False  # a thread that waits for the mount has the descriptor then
    try:
        while True:
            chunk = within(timeouts.USER_FILE_S, os.read, opened, _CHUNK_BYTES)
            if isinstance(chunk, Missing):
                is_held = chunk.missing == "timeout"
                why = "nothing more is read: its mount hangs" if is_held else chunk.detail
                raise OSError(f"{path}: {why}")
            if not chunk:
                return
            yield chunk
    finally:
        if not is_held:
            with suppress(OSError):
                os.close(opened)


def _opened(path: Path) -> Fact[int]:
    """Return a descriptor of a regular file: anything else could hold us up for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        failure = missing_for(error)
        return (
            Missing(failure.missing, error.strerror or failure.detail)
            if isinstance(error, OSError)
            else failure
        )
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return Missing("error", "not a regular file")
    return descriptor


def saved_soak(judge: SoakJudge) -> BenchResult:
    """Return the series as the benchmark that wrote it: its plan, and the ranks that ended it."""
    start, end = judge.start, judge.end
    assert start is not None  # noqa: S101 (lines_in)
    plan = BenchPlan(
        "nccl" if start.backend == "nccl" else "gloo", start.ops, (start.size_bytes,), "float32", 0, None,
        start.plan.duration_s, True, soak=start.plan,
    )  # fmt: skip
    lost = () if end is None else end.lost
    failures = tuple(
        RankFailure(
            rank.rank, rank.host, "died" if rank.kind == "died" else "late", "the soak", rank.detail, 0.0
        )
        for rank in lost
    )
    return BenchResult(
        plan.backend,
        len(start.hosts),
        len(set(start.hosts)),
        plan,
        start.transport,
        (),
        failures=failures,
        unfinished="" if end is None or end.is_finished else end.why,
        soak=judge.result(),
    )
