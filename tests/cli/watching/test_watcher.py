"""The watcher of one node on node 0's word, and without it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.cli.watching.plan import WatchPlan
from ncclcheck.cli.watching.watcher import Watcher
from ncclcheck.facts.job.deaths import Death
from ncclcheck.model.job.watched import Watch, WatchedRank

FAILED = 1 << 8  # as of wait(2): exit code 1


@pytest.fixture
def told() -> list[Watch]:
    """What the watcher told."""
    return []


@pytest.fixture
def watcher(tmp_path: Path, told: list[Watch]) -> Watcher:
    """A watcher of this process, which it does not look at by itself."""
    plan = WatchPlan(os.getpid(), tmp_path, 60.0, dumps=False, is_child=False)
    return Watcher(plan, lambda watch, _aloud: told.append(watch))


def test_the_rank_that_node_0_named_is_no_victim_of_itself(watcher: Watcher, told: list[Watch]) -> None:
    watcher.worst = Watch("died", 1.0, (WatchedRank(3, "node1", 103, reason="ended"),), (0,))
    watcher._deaths.deaths += [Death(rank, 100 + rank, time.monotonic(), FAILED) for rank in (3, 1)]
    watcher.close()
    assert watcher.worst.victims == (0, 1)
    assert told == []
