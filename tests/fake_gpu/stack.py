"""The fake CUDA stack of `scripts/test --fake-gpu DIR`: torch's own ProcessGroupNCCL runs on it without a GPU.

`DIR/run STACK VERSION COMMAND` runs a command with that version of torch. GPUs, streams, events, CUDA graphs and NCCL
are what the stack makes of them: what is shown here is the order of events, not speed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ncclcheck.bench.progress_page import Progress, read_page

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_GIVEN = "needs the fake CUDA stack (scripts/test --fake-gpu DIR)"
LIMIT_S = 180.0
# What the stack itself is blamed for: its driver is of CUDA 12.8, and its NCCL is not the one that torch asks for.
ARTEFACTS = {"driver-too-old", "library-conflict"}
BENCH = ("bench", "--backend", "nccl", "--no-preflight", "--timeout", "120")


class FakeTorch(Struct, frozen=True):
    """One version of torch on the stack: the folder with `run`, the folder that `setup` filled, the version."""

    folder: str
    stack: str
    version: str

    def on_stack(self, *argv: str) -> list[str]:
        """A command on the stack."""
        return [f"{self.folder}/run", self.stack, self.version, *argv]

    def command(self, *words: str) -> list[str]:
        """`ncclcheck WORDS` on the stack."""
        return self.on_stack("python", "-m", "ncclcheck", *words)


def given() -> list[Any]:
    """The versions that `scripts/test --fake-gpu` made ready, as parameters of a fixture; a skip without."""
    folder, stack, *versions = os.environ.get("NCCLCHECK_TEST_FAKE_GPU", ":").split(":")
    if not versions:
        return [pytest.param(None, marks=pytest.mark.skip(reason=NOT_GIVEN), id="none")]
    return [pytest.param(FakeTorch(folder, stack, version), id=version) for version in versions]


class Outcome(Struct, frozen=True):
    """How a run ended: its exit code, what it printed, its report."""

    code: int
    printed: str
    report: dict[str, Any]

    @property
    def points(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The points of the benchmark by collective and size."""
        return {(point["op"], point["size_bytes"]): point for point in self.report["bench"]["points"]}

    @property
    def errors(self) -> set[str]:
        """The slugs of the errors that are found, but for those that the stack is blamed for."""
        findings = self.report["findings"]
        return {found["slug"] for found in findings if found["severity"] == "error"} - ARTEFACTS

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The ranks that are named as those that broke the benchmark."""
        found: list[dict[str, Any]] = self.report["bench"]["failures"]
        return found


class Started:
    """A run on one fake node. A class because it is a process, with a folder for its report."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process, self._folder = process, folder

    @property
    def said(self) -> str:
        """What it printed so far."""
        return (self._folder / "printed").read_text(errors="replace")

    def measuring(self, ranks: int = 4) -> dict[int, int]:
        """Return the process id of each rank once all of them measure."""
        return ranks_measuring(lambda: _descendants(self._process.pid), ranks, self.is_running)

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def outcome(self) -> Outcome:
        """How it ended."""
        code = self._process.wait(LIMIT_S)
        report = self._folder / "report.json"
        assert report.exists(), self.said
        return Outcome(code, self.said, json.loads(report.read_text()))


@contextmanager
def started(
    torch: FakeTorch, folder: Path, *words: str, gpus: int = 4, env: Mapping[str, str] | None = None
) -> Iterator[Started]:
    """`ncclcheck WORDS` on a node with so many GPUs; it has ended after the block."""
    variables = {"GPUS": str(gpus), "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder)}
    argv = torch.command(*words, "--output", str(folder / "report.json"))
    with (folder / "printed").open("wb") as printed:
        process = subprocess.Popen(
            argv,
            env={**os.environ, **variables, **(env or {})},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Started(process, folder)
    finally:
        process.terminate()
        process.wait(30)


def run(torch: FakeTorch, folder: Path, *words: str, **how: Any) -> Outcome:
    """`ncclcheck WORDS` on one node to its end."""
    with started(torch, folder, *words, **how) as running:
        return running.outcome()


def ranks_measuring(
    processes: Callable[[], Sequence[int]], ranks: int, goes_on: Callable[[], bool]
) -> dict[int, int]:
    """Return the process id of each rank once so many are among `processes` and all of them measure."""
    deadline = time.monotonic() + LIMIT_S
    pages: Mapping[int, tuple[int, Progress]] = {}
    while time.monotonic() < deadline and goes_on():
        pages = pages_of(processes())
        if len(pages) == ranks and all(progress.phase == "measuring" for _, progress in pages.values()):
            return {rank: pid for rank, (pid, _) in pages.items()}
        time.sleep(0.05)
    raise AssertionError(f"{ranks} ranks do not measure: {pages}")


def pages_of(processes: Sequence[int]) -> dict[int, tuple[int, Progress]]:
    """Return the process id of each rank among the processes, and what its page of progress says."""
    found = {}
    for pid in processes:
        try:
            if b"ncclcheck.bench.worker" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                _, is_page, rank = str(descriptor.readlink()).partition("memfd:ncclcheck-rank-")
                if is_page:
                    page = os.open(descriptor, os.O_RDONLY)
                    found[int(rank.split()[0])] = pid, read_page(page)
                    os.close(page)
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    return found


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found[1:]
