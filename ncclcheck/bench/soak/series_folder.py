"""Reads the folder of a soak: of this run, of one that was killed, or of anybody; nothing in it is believed."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, within
from ncclcheck.measure.soak.judge import SoakJudge
from ncclcheck.measure.soak.lines import LONGEST_LINE, read_lines, whole_lines
from ncclcheck.model.bench import BenchPlan, BenchResult, RankFailure
from ncclcheck.model.benchmarks.soak import SoakStart
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot

FILE = "blocks.jsonl"
NODES = "nodes.json"
_NODES_BYTES = 1 << 30
_FIRST_LINES = 1000  # in which a series begins


def has_series(folder: str) -> bool:
    """Return whether there is a file of blocks, as far as that can be seen in time."""
    return within(timeouts.USER_FILE_S, os.path.lexists, Path(folder) / FILE) is True


def lines_in(folder: str) -> Fact[SoakJudge]:
    """Return the series in the folder, judged; Missing where there is none."""
    judge, where = SoakJudge(folder), f"{folder}/{FILE}"
    opened = _opened(Path(folder) / FILE)
    if isinstance(opened, Missing):
        return opened
    try:
        with opened as file:
            for line in read_lines(whole_lines(file)):
                judge.feed(line)
    except OSError as error:
        return Missing("error", f"{where}: {error.strerror}")
    except ValueError:
        return Missing(
            "error", f"{where}: a line is longer than {LONGEST_LINE >> 20} MiB, which no soak writes"
        )
    if judge.start is None:
        return Missing("error", f"{where}: no series of a soak begins there")
    return judge


def start_in(folder: str) -> Fact[SoakStart]:
    """Return how the series in the folder begins; Missing where none does."""
    where = f"{folder}/{FILE}"
    opened = _opened(Path(folder) / FILE)
    if isinstance(opened, Missing):
        return opened
    try:
        with opened as file:
            first = (line for line in read_lines(islice(whole_lines(file), _FIRST_LINES)))
            found = next((line for line in first if isinstance(line, SoakStart)), None)
    except (OSError, ValueError) as error:
        return Missing("error", f"{where}: {error}")
    return found or Missing("error", f"{where}: no series of a soak begins there")


def nodes_in(folder: str) -> Fact[Snapshot]:
    """Return what was known of the nodes when the soak began."""
    opened = _opened(Path(folder) / NODES)
    if isinstance(opened, Missing):
        return opened
    try:
        with opened as file:
            return decode(file.read(_NODES_BYTES), Snapshot)
    except OSError as error:
        return Missing("error", f"{folder}/{NODES}: {error.strerror}")
    except DecodeError as error:
        return Missing("error", f"{folder}/{NODES}: {error}")


def _opened(path: Path) -> Fact[BinaryIO]:
    """Open a regular file: anything else, and a mount that hangs, could hold us up for ever."""
    found = within(timeouts.USER_FILE_S, _opened_now, path)
    return Missing("error", f"{path}: {found.detail}") if isinstance(found, Missing) else found


def _opened_now(path: Path) -> Fact[BinaryIO]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        told = missing_for(error)
        return Missing(told.missing, error.strerror or told.detail) if isinstance(error, OSError) else told
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return Missing("error", "not a regular file")
    return os.fdopen(descriptor, "rb")


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
