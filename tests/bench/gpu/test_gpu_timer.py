"""The nccl device on a stand-in for `torch.cuda`: it measures what the calls take, whatever the GPUs' clocks."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import RankState, judge
from ncclcheck.bench.gpu.gpu_timer import Calls, GpuTimer, captured
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.bench.worker import _kind
from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.blame_gpus import slow_gpus
from ncclcheck.model.bench import BenchPlan
from tests.bench.cuda_machine import Gpu, Machine
from tests.bench.cuda_stand_in import install
from tests.bench.gpu.stand_in_group import KI, MI, StandInGroup

pytestmark = pytest.mark.slow  # imports torch
TRUE_US = {4: 25.0, 64 * KI: 25.0, MI: 40.0, 2 * MI: 1100.0, 16 * MI: 2000.0}
CLOCKS = (1980.0, 1965.0, 1950.0, 1755.0)
LAST_LEAVES_US = 0.9
HOSTS = tuple(f"node{rank + 1:02}" for rank in range(len(CLOCKS)))
PLAN = BenchPlan("nccl", ("all_reduce",), tuple(TRUE_US), "float32", 5, 60, 5.0, verify=False)


def takes_us(_op: str, size_bytes: int) -> float:
    """Return the true time of a collective."""
    return TRUE_US[size_bytes]


def group(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> StandInGroup:
    """Return the ranks of that machine."""
    return StandInGroup(machine, monkeypatch, takes_us)


def gpus(**changes: Any) -> list[Gpu]:
    """Return four GPUs whose hosts are up to 60 us apart, as a barrier leaves them."""
    return [
        Gpu(clock, leaves_late_us=LAST_LEAVES_US / 3 * number, wakes_late_us=20.0 * number, **changes)
        for number, clock in enumerate(CLOCKS)
    ]


@pytest.mark.parametrize("graph", [False, True])
def test_clocks_that_differ_change_no_figure_and_make_nobody_late(
    monkeypatch: pytest.MonkeyPatch, *, graph: bool
) -> None:
    ranks = group(Machine(gpus()), monkeypatch).points(PLAN, graph=graph)
    assert [[point.size_bytes for point in points] for points in ranks] == [list(TRUE_US)] * 4
    for point in ranks[0]:
        true_us = TRUE_US[point.size_bytes] + LAST_LEAVES_US
        within = 0.01 if point.size_bytes >= MI else 0.05
        assert point.time_us.mean == pytest.approx(true_us, rel=within)
        assert (point.iters, point.unstable) == (60, None)
        assert [rank.clock_mhz for rank in point.ranks] == pytest.approx(list(CLOCKS), rel=1e-3)
    assert not tuple(slow_ranks(ranks[0]))
    assert [(slow.rank, slow.part) for slow in slow_gpus((), ranks[0])] == [(3, "throttled")]


def test_the_budget_ends_a_point_whose_mean_is_of_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, iters=None, budget_s=20.0, sizes_bytes=(64 * KI,))
    (point,) = group(Machine(gpus()), monkeypatch).points(plan)[0]
    assert point.iters >= 2 * 6
    assert point.time_us.mean < point.time_us.min  # the events between single calls take time themselves
    assert point.busbw_low_gb_s is not None
    assert point.busbw_high_gb_s is not None
    assert point.busbw_low_gb_s < point.busbw_gb_s < point.busbw_high_gb_s


def test_where_a_launch_takes_long_the_stream_is_held_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 32 calls takes 32 ms to enqueue, which the first hold of 10 ms does not cover."""
    plan = replace(PLAN, sizes_bytes=(64 * KI,))
    (point,) = group(Machine(gpus(launch_us=1000.0)), monkeypatch).points(plan)[0]
    assert point.unstable is None
    assert point.time_us.mean == pytest.approx(25.0 + LAST_LEAVES_US, rel=0.05)


def test_a_point_whose_time_is_that_of_launching_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = gpus()
    slow[2].launch_us = 20_000.0
    plan = replace(PLAN, sizes_bytes=(64 * KI,))
    (point,) = group(Machine(slow), monkeypatch).points(plan)[0]
    assert point.unstable is not None
    assert "a GPU waited until its host had enqueued the calls" in point.unstable


def test_events_add_nothing_to_a_large_call_over_the_fastest_nvlink(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """32 MiB at 470 GB/s take 71 us: an event of 1 us after each call would be more than 1 %."""
    plan = replace(PLAN, sizes_bytes=(32 * MI,), warmup=1, iters=8)
    (point,) = StandInGroup(Machine([Gpu(), Gpu()]), monkeypatch, lambda *_: 71.0).points(plan)[0]
    assert point.time_us.mean == pytest.approx(71.0, rel=0.01)
    assert point.time_us.min > 71.0 * 1.01


def test_four_buffers_of_the_largest_size_where_every_gpu_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = GpuTimer._time

    def time_batch(self: GpuTimer, calls: Calls, marks: Sequence[int], progress: ProgressPage) -> list[float]:
        seen.append(len(calls))
        return real(self, calls, marks, progress)

    monkeypatch.setattr(GpuTimer, "_time", time_batch)
    plan = replace(PLAN, sizes_bytes=(16 * MI,), warmup=0, iters=8)
    group(Machine(gpus()), monkeypatch).points(plan)
    assert seen == [1] * 4 + [4] * 8
    seen.clear()
    full = gpus()
    full[3].free_bytes = 64 * MI
    group(Machine(full), monkeypatch).points(plan)
    assert set(seen) == {1}


def states_of(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> tuple[RankState, ...]:
    """Return where every rank is seen, half a minute after nothing moved any more."""
    return group(machine, monkeypatch).states(replace(PLAN, sizes_bytes=(64 * KI,)))


@pytest.mark.parametrize("stalls_at", [4, 40, 41, 60])
def test_a_gpu_that_hangs_is_named_and_not_the_network(
    monkeypatch: pytest.MonkeyPatch, stalls_at: int
) -> None:
    """It hangs in a barrier, in a gate or in a timed call."""
    machine = Machine(gpus())
    machine.gpus[2].stalls_at = stalls_at
    states = states_of(machine, monkeypatch)
    assert [state.gpu for state in states] == ["alive", "alive", "silent", "alive"]
    (failure,) = judge(states, HOSTS, dict.fromkeys(HOSTS, 0.0))
    assert (failure.rank, failure.host, failure.state) == (2, "node03", "hung")
    assert "network" not in failure.detail


def test_a_gpu_that_does_not_come_to_the_call_is_not_inside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(gpus())
    machine.gpus[1].spins_forever_at = 40
    states = states_of(machine, monkeypatch)
    assert [state.inside for state in states] == [True, False, True, True]
    assert states[1].calls == states[0].calls - 1
    for told in (states, [replace(state, gpu="behind" if state.rank == 1 else "") for state in states]):
        (failure,) = judge(told, HOSTS, dict.fromkeys(HOSTS, 0.0))
        assert (failure.rank, failure.state) == (1, "hung")


def test_where_all_gpus_are_silent_alike_none_of_them_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one hardware queue the small kernel waits behind the call, too."""
    machine = Machine(gpus())
    machine.gpus[2].stalls_at = 40
    states = [replace(state, gpu="silent") for state in states_of(machine, monkeypatch)]
    assert {failure.state for failure in judge(states, HOSTS, dict.fromkeys(HOSTS, 0.0))} == {"stuck"}


def test_the_gpu_with_an_error_is_named_and_not_those_that_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(gpus())
    machine.gpus[2].fails_at = 40
    states = states_of(machine, monkeypatch)
    assert [state.error_kind for state in states] == ["none", "none", "own", "none"]
    (failure,) = judge(states, HOSTS, dict.fromkeys(HOSTS, 0.0))
    assert (failure.rank, failure.state) == (2, "error")
    assert "uncorrectable ECC error" in failure.detail


def test_an_error_of_the_gpu_is_its_own_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Gpu(fails_at=40)])
    with pytest.raises(RuntimeError, match="ECC") as caught:
        group(machine, monkeypatch).points(PLAN)
    progress = ProgressPage(None)
    progress.enter()
    assert _kind(caught.value, progress) == "own"


def test_no_garbage_is_collected_during_a_capture_and_it_is_again_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is collected may free memory of the GPU, which ends a capture."""
    machine = Machine([Gpu()])
    install(machine, monkeypatch)
    seen: list[bool] = []

    def fails() -> None:
        seen.append(gc.isenabled())
        raise RuntimeError

    with machine.rank(0):
        captured(lambda: seen.append(gc.isenabled()))
        with pytest.raises(RuntimeError):
            captured(fails)
    assert seen == [False, False]
    assert gc.isenabled()
