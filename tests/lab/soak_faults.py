"""What the lab tests of `soak` and scripts/soaks do to a running soak."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from ncclcheck.bench.soak.series_folder import FILE
from tests.lab.nodes import Node

_WORKER = "ncclcheck.bench.worker"


def blocks_in(folder: Path, count: int, within_s: float) -> None:
    """Wait until so many blocks are on disk."""
    deadline = time.monotonic() + within_s
    while not (folder / FILE).exists() or (folder / FILE).read_bytes().count(b"\n") <= count:
        assert time.monotonic() < deadline, f"not {count} blocks within {within_s:.0f} s"
        time.sleep(0.1)


def workers_of(node: Node) -> list[int]:
    """The processes of the node's ranks."""
    return [pid for pid, command in node.processes().items() if _WORKER in command]


def stopped_workers(node: Node, seconds: float) -> None:
    """The node's ranks are stopped for so long."""
    pids = workers_of(node)
    assert pids, f"no ranks on {node.name}: {node.processes()}"
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(seconds)
