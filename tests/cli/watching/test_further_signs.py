"""NCCL's counts and the GPUs as signs of an advance where nothing else moves, by stand-ins of both."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ncclcheck.cli.watching import further_signs as module
from ncclcheck.cli.watching.further_signs import FurtherSigns
from ncclcheck.cli.watching.peers import Peers
from ncclcheck.cli.watching.watch_coordinator import LeadPlan
from ncclcheck.cli.watching.watch_plan import WatchPlan
from ncclcheck.cli.watching.watcher import Watcher
from ncclcheck.facts.gpu.gpu_load import GpuLoads
from ncclcheck.facts.job.rank_processes import RankProcess
from ncclcheck.model.job.watched import Look, RankLook, Watch
from tests.exchange.ras_server import serving
from tests.facts.nvml import stand_in
from tests.logs.ras_answers import as_json
from tests.ports import free_port

RANKS = (RankProcess(0, 1000, "0"), RankProcess(1, 1001, "0"))  # the process ids of as_json
NO_GPUS = {"LD_LIBRARY_PATH": "", "PATH": ""}


def _signs(ras: str, environ: dict[str, str] | None = None) -> FurtherSigns:
    return FurtherSigns(ras, 60.0, GpuLoads(environ or NO_GPUS))


def _asked(signs: FurtherSigns, times: int, ranks: tuple[RankProcess, ...] = RANKS) -> list[bool]:
    """Return what each of so many questions found: each is asked, and its answer waited for."""
    found = []
    for _ in range(times):
        for question in (signs._ras, signs._gpus):
            question._next_s = 0.0
        signs.seen(ranks, asks_ras=True)
        for question in (signs._ras, signs._gpus):
            assert question._asked is not None
            question._asked.result(30)
            question._next_s = float("inf")  # only the answer, no new question
        found.append(signs.seen(ranks, asks_ras=True))
    return found


def test_counts_of_nccl_that_grow_are_an_advance() -> None:
    answers = [as_json({0: count, 1: count}) for count in (7, 8, 8, 9)]
    with serving([""], answers) as server:
        signs = _signs(f"127.0.0.1:{server.port}")
        assert _asked(signs, 4) == [False, True, False, True]


def test_counts_that_grew_while_the_job_moved_are_none() -> None:
    answers = [as_json({0: count}) for count in (7, 9, 9)]
    with serving([""], answers) as server:
        signs = _signs(f"127.0.0.1:{server.port}")
        assert _asked(signs, 1) == [False]
        signs.rest()
        assert _asked(signs, 2) == [False, False]


def test_the_ras_of_another_job_on_this_node_is_no_sign() -> None:
    with serving([""], [as_json({0: 7}), as_json({0: 8}), as_json({0: 9})]) as server:
        signs = _signs(f"127.0.0.1:{server.port}")
        assert _asked(signs, 3, (RankProcess(0, 4711, "0"),)) == [False, False, False]


def test_where_another_watcher_asks_ras_this_one_does_not() -> None:
    with serving([""], [as_json({0: 7})]) as server:
        signs = _signs(f"127.0.0.1:{server.port}")
        signs.seen(RANKS, asks_ras=False)
        assert signs._ras._asked is None
        assert server.commands == []


@pytest.mark.parametrize(
    ("behaviour", "found"),
    [("memoryBusy=60", True), ("nvmlDeviceGetUtilizationRates=100 nvmlDeviceGetPowerUsage=120000", False)],
)
def test_a_gpu_that_computes_is_an_advance_and_one_that_waits_in_nccl_is_none(
    behaviour: str, found: bool
) -> None:
    signs = _signs(f"127.0.0.1:{free_port()}", stand_in(behaviour))
    try:
        assert _asked(signs, 2) == [found, found]
    finally:
        signs.close()


def test_an_answer_that_takes_long_holds_up_no_look_and_is_not_asked_for_soon_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def slow(_: str) -> bytes:
        asked.append(time.monotonic())
        time.sleep(0.5)
        return b""

    monkeypatch.setattr(module, "ask_ras", slow)
    signs = _signs("localhost")
    began = time.monotonic()
    for _ in range(20):
        assert not signs.seen(RANKS, asks_ras=True)
    assert time.monotonic() - began < 0.4
    assert len(asked) == 1
    assert signs._ras._asked is not None
    signs._ras._asked.result(30)
    signs.seen(RANKS, asks_ras=True)
    assert signs._ras._next_s - time.monotonic() == pytest.approx(15, abs=1)  # a quarter of the patience


def _still(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what makes the watcher look at ranks of which nothing moves."""
    from ncclcheck.cli.watching import watcher as looking

    looks = tuple(RankLook(rank.rank, rank.pid, "S", 1.0, 5, 10) for rank in RANKS)
    monkeypatch.setattr(looking, "find_ranks", lambda _: RANKS)
    monkeypatch.setattr(watcher._deaths, "follow", lambda _: None)

    def look(at_s: float) -> None:
        monkeypatch.setattr(looking, "look_at", lambda *_: Look(at_s, looks))
        watcher.look()

    return look


@pytest.mark.parametrize(("counts", "studies"), [((7, 8, 9, 10, 11, 12), 0), ((7, 7, 7, 7, 7, 7), 1)])
def test_a_job_of_one_node_is_frozen_only_if_nccl_counts_nothing_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counts: tuple[int, ...], studies: int
) -> None:
    told: list[Watch] = []
    peers = Peers(lambda: None, LeadPlan(5.0, 12.0, 1.0), lambda _: None)  # nobody to meet
    with serving([""], [as_json({0: count, 1: count}) for count in counts]) as server:
        plan = WatchPlan(1, tmp_path, 12.0, dumps=False, ras=f"127.0.0.1:{server.port}", is_child=False)
        watcher = Watcher(plan, lambda watch, _: told.append(watch), peers)
        watcher._further = _signs(plan.ras)
        begun: list[float] = []
        monkeypatch.setattr(watcher, "_begin_study", lambda: begun.append(1.0))
        look = _still(watcher, monkeypatch)
        for number in range(6):
            look(5.0 * number / 2)
            if watcher._further._ras._asked is not None:
                watcher._further._ras._asked.result(30)
            watcher._further._ras._next_s = 0.0
    assert len(begun) == studies
