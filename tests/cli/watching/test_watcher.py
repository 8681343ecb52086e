"""The watcher of one node on node 0's word, and without it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.cli.watching import watcher as module
from ncclcheck.cli.watching.peers import Peers
from ncclcheck.cli.watching.watch_coordinator import LeadPlan
from ncclcheck.cli.watching.watch_plan import WatchPlan
from ncclcheck.cli.watching.watcher import Watcher
from ncclcheck.facts.job.deaths import Death
from ncclcheck.facts.job.rank_processes import RankProcess
from ncclcheck.model.job.together import WatchOrder
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


@pytest.fixture
def led(tmp_path: Path, told: list[Watch]) -> Watcher:
    """A watcher that node 0 leads."""
    peers = Peers(lambda: None, LeadPlan(1.0, 10.0, 1.0), lambda _: None)
    peers._met = True
    plan = WatchPlan(
        os.getpid(), tmp_path, 60.0, dumps=True, pipe_prefix=str(tmp_path / "pipe"), is_child=False
    )
    return Watcher(plan, lambda watch, _aloud: told.append(watch), peers)


def test_node_0_s_decision_is_told_with_the_files_that_this_node_kept(
    led: Watcher, told: list[Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "dump_recorders", lambda *_: ["nccl_trace_rank_3"])
    led._decided(Watch("hang", evidence=("look-1/rank-3.proc.txt",), remarks=("no py-spy",)))
    assert told == []  # node 0 decides
    led._obey(WatchOrder(1, decided=1, watch=Watch("hang", 60.0, remarks=("no py-spy",))))
    assert led.worst.evidence == ("look-1/rank-3.proc.txt", "nccl_trace_rank_3")
    assert led.worst.remarks == ("no py-spy",)
    assert told == [led.worst]
    led._obey(WatchOrder(2, decided=2, watch=Watch("silent", 15.0, silent=("node2",))))
    assert (told[-1].decision, led.worst.decision) == ("silent", "hang")
    led._obey(WatchOrder(3, decided=3, watch=Watch("ok")))
    assert led.worst == Watch("ok")


def test_recorders_that_cannot_be_dumped_are_said(
    led: Watcher, told: list[Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> list[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "dump_recorders", full)
    led._obey(WatchOrder(1, decided=1, watch=Watch("hang", 60.0)))
    assert "could not be written" in told[0].remarks[0]


def test_stacks_that_the_user_asks_for_on_another_node_are_kept_and_said(
    led: Watcher, told: list[Watch], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(led, "_begin_study", lambda: None)
    led.ranks = (RankProcess(3, os.getpid(), "0"),)
    led.look_closely()
    led._decided(Watch("quiet", evidence=("look-1/rank-3.stacks.json",)))
    assert [(watch.decision, str(tmp_path) in watch.remarks[0]) for watch in told] == [("ok", True)]
    led._decided(Watch("quiet", evidence=("look-2/rank-3.stacks.json",)))
    assert len(told) == 1  # asked once
