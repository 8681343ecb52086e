"""The nccl device on a stand-in for `torch.cuda`: it measures what the calls take, whatever the GPUs' clocks."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from ncclcheck.bench import point as point_module
from ncclcheck.bench.agreement import BatchReport
from ncclcheck.bench.gpu.device import Device, gpu_device
from ncclcheck.bench.gpu.gpu_timer import Calls, GpuTimer
from ncclcheck.bench.heartbeat import NOT_IDLE, Heartbeat, Idle
from ncclcheck.bench.point import measure_all, prepare, with_agreed_buffers
from ncclcheck.bench.progress import ProgressPage, new_page, read_page
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.watch import RankState, judge
from ncclcheck.bench.worker import _kind
from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.blame_gpus import slow_gpus
from ncclcheck.model.bench import BenchPlan, Point
from tests.bench.cuda_stand_in import Gpu, HungError, Machine, install

pytestmark = pytest.mark.slow  # imports torch
KI, MI = 1 << 10, 1 << 20
TRUE_US = {4: 25.0, 64 * KI: 25.0, MI: 40.0, 2 * MI: 1100.0, 16 * MI: 2000.0}
CLOCKS = (1980.0, 1965.0, 1950.0, 1755.0)
LAST_LEAVES_US = 0.9
HOSTS = tuple(f"node{rank + 1:02}" for rank in range(len(CLOCKS)))
PLAN = BenchPlan("nccl", ("all_reduce",), tuple(TRUE_US), "float32", 5, 60, 5.0, verify=False)


class _Quiet(Heartbeat):
    """This machine's own load is not that of the simulated hosts."""

    def __init__(self) -> None:
        """Start no thread."""

    def take(self) -> Idle:
        """Return nothing."""
        return NOT_IDLE


class Group:
    """The ranks of a group as threads: collectives take time on the stand-in, and carry nothing."""

    def __init__(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._machine = machine
        self._size = len(machine.gpus)
        self._barrier = threading.Barrier(self._size)
        self._reports: dict[int, BatchReport] = {}
        install(machine, monkeypatch)
        monkeypatch.setattr(torch.distributed, "all_reduce", self._all_reduce)
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(point_module, "barrier", self._meet)
        monkeypatch.setattr(point_module, "exchange", self._exchange)

    def _all_reduce(self, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        self._machine.collective(TRUE_US[size])()

    def _meet(self, device: Device, progress: ProgressPage) -> None:
        progress.enter()
        self._machine.collective(25.0)()
        device.synchronize(progress)
        progress.leave(measured=False)

    def _exchange(self, own: BatchReport, _device: Device, _progress: ProgressPage) -> list[BatchReport]:
        self._reports[self._machine.number] = own
        self._barrier.wait(30)
        found = [self._reports[rank] for rank in range(self._size)]
        self._barrier.wait(30)
        return found

    def run(
        self, plan: BenchPlan, *, pages: Sequence[int | None] = (), graph: bool = False
    ) -> list[list[Point]]:
        """Return every rank's points."""

        def rank_points(number: int) -> list[Point]:
            with self._machine.rank(number):
                hosts = tuple(f"node{rank + 1:02}" for rank in range(self._size))
                task = WorkerTask(number, self._size, number, "127.0.0.1", 1, "test/", plan, hosts)
                device = gpu_device(torch.device("cpu"), cuda_graph=graph)
                device = replace(device, pool_bytes=8 * MI, loop_bytes=MI, evict=lambda: None)
                page = ProgressPage(pages[number] if pages else None)
                rank = replace(prepare(task, device, page), heartbeat=_Quiet())
                rank = with_agreed_buffers(rank)
                try:
                    return [point for point in measure_all(rank) if isinstance(point, Point)]
                except RuntimeError as error:
                    page.fail(_kind(error, page), f"RuntimeError: {error}")  # as the worker does
                    raise

        with ThreadPoolExecutor(self._size) as threads:
            return list(threads.map(rank_points, range(self._size)))


def gpus(**changes: Any) -> list[Gpu]:
    """Return four GPUs whose hosts are up to 60 us apart, as a barrier leaves them."""
    return [
        Gpu(clock, leaves_late_us=LAST_LEAVES_US / 3 * number, host_us=20.0 * number, **changes)
        for number, clock in enumerate(CLOCKS)
    ]


@pytest.mark.parametrize("graph", [False, True])
def test_clocks_that_differ_change_no_figure_and_make_nobody_late(
    monkeypatch: pytest.MonkeyPatch, *, graph: bool
) -> None:
    ranks = Group(Machine(gpus()), monkeypatch).run(PLAN, graph=graph)
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
    (point,) = Group(Machine(gpus()), monkeypatch).run(plan)[0]
    assert point.iters >= 2 * 6
    assert point.time_us.mean < point.time_us.min  # the events between single calls take time themselves
    assert point.busbw_low_gb_s is not None
    assert point.busbw_high_gb_s is not None
    assert point.busbw_low_gb_s < point.busbw_gb_s < point.busbw_high_gb_s


def test_where_a_launch_takes_long_the_stream_is_held_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 32 calls takes 32 ms to enqueue, which the first hold of 10 ms does not cover."""
    plan = replace(PLAN, sizes_bytes=(64 * KI,))
    (point,) = Group(Machine(gpus(launch_us=1000.0)), monkeypatch).run(plan)[0]
    assert point.unstable is None
    assert point.time_us.mean == pytest.approx(25.0 + LAST_LEAVES_US, rel=0.05)


def test_a_point_whose_time_is_that_of_launching_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = gpus()
    slow[2].launch_us = 20_000.0
    plan = replace(PLAN, sizes_bytes=(64 * KI,))
    (point,) = Group(Machine(slow), monkeypatch).run(plan)[0]
    assert point.unstable is not None
    assert "a GPU waited until its host had enqueued the calls" in point.unstable


def test_four_buffers_of_the_largest_size_where_every_gpu_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = GpuTimer.time_calls

    def time_calls(self: GpuTimer, calls: Calls, progress: ProgressPage) -> list[float]:
        seen.append(len(calls))
        return real(self, calls, progress)

    monkeypatch.setattr(GpuTimer, "time_calls", time_calls)
    plan = replace(PLAN, sizes_bytes=(16 * MI,), warmup=0, iters=8)
    Group(Machine(gpus()), monkeypatch).run(plan)
    assert seen == [1] * 4 + [4] * 8
    seen.clear()
    full = gpus()
    full[3].free_bytes = 64 * MI
    Group(Machine(full), monkeypatch).run(plan)
    assert set(seen) == {1}


def states_of(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[RankState]:
    """Where every rank is seen, half a minute after nothing moved any more."""
    pages = [new_page("test") for _ in machine.gpus]
    with pytest.raises((HungError, RuntimeError)):
        Group(machine, monkeypatch).run(replace(PLAN, sizes_bytes=(64 * KI,)), pages=pages)
    states = []
    for number, page in enumerate(pages):
        seen = read_page(page)
        os.close(page)
        states.append(
            RankState(
                number, HOSTS[number], 4000 + number, "S", None, 0.0, seen.phase, "all_reduce", 64 * KI,
                seen.iteration, seen.inside, seen.calls, 30.0, 0.01, seen.error_kind, seen.error, gpu=seen.gpu,
            )
        )  # fmt: skip
    return states


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
        Group(machine, monkeypatch).run(PLAN)
    progress = ProgressPage(None)
    progress.enter()
    assert _kind(caught.value, progress) == "own"
