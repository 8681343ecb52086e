"""The file of a soak on node 0: one line for each block, on disk before the next one is taken."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ncclcheck.measure.soak.judge import SoakJudge
from ncclcheck.measure.soak.lines import line_of, read_lines
from ncclcheck.model.bench import BenchPlan, BenchResult, RankFailure
from ncclcheck.model.benchmarks.soak import SoakBlock, SoakEnd, SoakLine, SoakStart
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot

FILE = "blocks.jsonl"
NODES = "nodes.json"


def lines_in(folder: str) -> Fact[SoakJudge]:
    """Return the series in the folder, judged; Missing where there is none."""
    judge = SoakJudge(folder)
    try:
        with (Path(folder) / FILE).open("rb") as file:
            for line in read_lines(file):
                judge.feed(line)
    except OSError as error:
        return Missing("error", f"{folder}/{FILE}: {error.strerror}")
    if judge.start is None:
        return Missing("error", f"{folder}/{FILE}: no series of a soak begins there")
    return judge


def nodes_in(folder: str) -> Fact[Snapshot]:
    """Return what was known of the nodes when the soak began."""
    try:
        return decode((Path(folder) / NODES).read_bytes(), Snapshot)
    except OSError as error:
        return Missing("error", f"{folder}/{NODES}: {error.strerror}")
    except DecodeError as error:
        return Missing("error", f"{folder}/{NODES}: {error}")


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


class SoakRecord:
    """The series while it is written. A class because the file stays open, and every line is judged as well."""

    def __init__(self, folder: str, judge: SoakJudge | None = None) -> None:
        """Make the folder, or go on with the series in it (`judge`). Raises OSError."""
        self.judge = judge or SoakJudge(folder)
        self._lost = ""
        self._place = place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        path = place / FILE
        self._descriptor = os.open(path, flags if judge is not None else flags | os.O_EXCL, 0o644)
        if judge is not None:
            self._mend(path)
        _sync_folder(place)

    def _mend(self, path: Path) -> None:
        """End a line that a kill left unfinished, so that the next one begins where a line begins."""
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    os.write(self._descriptor, b"\n")

    @property
    def lost(self) -> str:
        """Return why lines could not be written; empty while all were."""
        return self._lost

    def keep_nodes(self, snapshot: Snapshot) -> None:
        """Write what is known of the nodes, for a report of the folder."""
        new = self._place / f"{NODES}.new"
        try:
            new.write_bytes(encode(snapshot))
            new.replace(self._place / NODES)
        except OSError as error:
            self._lost = self._lost or f"{error.strerror}"

    def begin(self, start: SoakStart) -> None:
        """Write the first line of the series, or of this part of it."""
        self._write(start)

    def add(self, block: SoakBlock) -> None:
        """Write a block."""
        self._write(block)

    def end(self, end: SoakEnd) -> None:
        """Write how the series ended, and close the file."""
        if self._descriptor < 0:
            return
        self._write(replace(end, at_s=round(time.time(), 3)))
        os.close(self._descriptor)
        self._descriptor = -1

    def _write(self, line: SoakLine) -> None:
        self.judge.feed(line)
        data = line_of(line)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:  # a full disk ends no soak: the report is made of what was judged
            self._lost = self._lost or f"{error.strerror}"


def _sync_folder(place: Path) -> None:
    """Make the name of the file last, too."""
    with suppress(OSError):
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
