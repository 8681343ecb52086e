"""One rank measures its points for itself; what damages a result is put between the call and the verification."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import pytest
import torch
from msgspec.structs import replace

from ncclcheck.bench.gpu.device import Calls, Device, open_device
from ncclcheck.bench.point import BenchRank, measure_all, prepare
from ncclcheck.bench.progress_page import ProgressPage, new_page, read_page
from ncclcheck.bench.task import WorkerTask
from ncclcheck.model.bench import BenchPlan, Op, Point
from ncclcheck.model.fact import Missing

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("group")]
PLAN = BenchPlan("gloo", ("all_reduce", "all_gather"), (1 << 10, 1 << 12), "int32", 2, 6, 5.0, True)


def ready(plan: BenchPlan, device: Device | None = None, page: int | None = None) -> BenchRank:
    task = WorkerTask(0, 1, 0, "127.0.0.1", 1, "test/", plan, ("node01",))
    return prepare(task, device or open_device("gloo", 0), ProgressPage(page))


def after_call(damage: Callable[[BenchRank, int], None], plan: BenchPlan = PLAN) -> tuple[Point, ...]:
    """The points of a device whose call of each iteration is followed by `damage`."""
    honest = open_device("gloo", 0)
    ranks: list[BenchRank] = []

    def time_calls(calls: Calls, progress: ProgressPage) -> list[float]:
        times_us = honest.time_calls(calls, progress)
        for iteration, _ in calls:
            damage(ranks[0], iteration)
        return times_us

    ranks.append(ready(plan, replace(honest, time_calls=time_calls)))
    return measured(ranks[0])


def measured(rank: BenchRank) -> tuple[Point, ...]:
    """Every point of its plan, none of which is refused."""
    points = tuple(measure_all(rank))
    return tuple(point for point in points if not isinstance(point, Missing))


def test_every_point_of_the_plan_is_measured_in_order_and_nothing_is_wrong() -> None:
    points = measured(ready(PLAN))
    assert [(one.op, one.size_bytes, one.count) for one in points] == [
        ("all_reduce", 1 << 10, 256), ("all_reduce", 1 << 12, 1024),
        ("all_gather", 1 << 10, 256), ("all_gather", 1 << 12, 1024),
    ]  # fmt: skip
    for point in points:
        assert (point.iters, point.wrong, point.first_wrong, point.dtype) == (6, 0, None, "int32")
        assert point.time_us.min <= point.time_us.p50 <= point.time_us.max
        assert point.busbw_gb_s == 0.0  # one rank moves nothing over a bus
        assert [(rank.rank, rank.host) for rank in point.ranks] == [(0, "node01")]


def test_the_page_says_where_the_rank_is_while_it_measures() -> None:
    page = new_page("test")
    seen = [read_page(page).point for _ in measure_all(ready(PLAN, page=page))]
    assert seen == [0, 1, 2, 3]
    assert read_page(page).phase == "agreeing"
    os.close(page)


def test_one_element_of_one_iteration_is_found_with_its_place() -> None:
    def flip(rank: BenchRank, iteration: int) -> None:
        if iteration == 3:  # the buffer of the third iteration of six: batches start at 1
            rank.recv[2 * 256 + 100] ^= 1

    (point,) = after_call(flip, replace(PLAN, ops=("all_reduce",), sizes_bytes=(1 << 10,)))
    assert point.wrong == 1
    assert point.first_wrong is not None
    assert (point.first_wrong.rank, point.first_wrong.iteration, point.first_wrong.offset) == (0, 3, 100)
    assert int(point.first_wrong.got) == int(point.first_wrong.expected) ^ 1


def test_what_was_left_from_the_iteration_before_is_wrong() -> None:
    """A call that does nothing leaves what it found: with all_gather the receive buffer of the last batch."""
    device = open_device("gloo", 0)

    def do_nothing(calls: Calls, progress: ProgressPage) -> list[float]:
        return device.time_calls([(iteration, lambda: None) for iteration, _ in calls], progress)

    plan = replace(PLAN, ops=("all_gather",), sizes_bytes=(1 << 10,))
    (point,) = measured(ready(plan, replace(device, time_calls=do_nothing)))
    assert point.wrong == 6 * 256


def test_damage_to_what_is_not_measured_is_not_counted() -> None:
    def spoil_warm_up(rank: BenchRank, iteration: int) -> None:
        if iteration <= 0:
            rank.recv.fill_(7)

    assert {point.wrong for point in after_call(spoil_warm_up)} == {0}


def test_what_is_not_verified_is_not_called_right() -> None:
    points = after_call(lambda rank, _: rank.recv.fill_(7), replace(PLAN, verify=False))
    assert {(point.wrong, point.first_wrong) for point in points} == {(None, None)}


def test_each_point_is_warmed_up_by_other_iterations_than_are_measured() -> None:
    iterations: list[int] = []
    after_call(
        lambda _, iteration: iterations.append(iteration),
        replace(PLAN, ops=("all_reduce",), sizes_bytes=(64,), warmup=3, iters=40),
    )
    assert iterations == [0, -3, -2, -1, *range(1, 41)]


def test_without_a_number_of_iterations_the_budget_ends_it() -> None:
    points = measured(ready(replace(PLAN, iters=None, budget_s=0.2)))
    assert len(points) == 4
    assert all(point.iters >= 1 for point in points)


def test_what_the_backend_refuses_is_said_once_for_each_size_and_the_rest_is_measured() -> None:
    """Gloo adds up no 8-bit floats (torch 2.13: "Invalid scalar type"); whole numbers of that length it does."""
    ops: tuple[Op, ...] = ("all_reduce", "reduce")
    refused = tuple(measure_all(ready(replace(PLAN, ops=ops, dtype="float8_e5m2"))))
    assert [isinstance(point, Missing) for point in refused] == [True] * 4
    assert refused[0] == refused[1]
    assert refused[0] == Missing("unsupported", "Invalid scalar type")
    assert [point.wrong for point in measured(ready(replace(PLAN, ops=ops, dtype="uint8")))] == [0] * 4


@pytest.mark.parametrize("text", ["Connection closed by peer [10.0.0.2]:1234", "shape mismatch"])
def test_an_error_of_another_kind_is_no_refusal(text: str) -> None:
    device = open_device("gloo", 0)

    def fails(_calls: Calls, _progress: ProgressPage) -> list[float]:
        raise RuntimeError(text)

    with pytest.raises(RuntimeError, match=re.escape(text)):
        tuple(measure_all(ready(PLAN, replace(device, time_calls=fails))))


def test_a_recorded_call_is_the_one_that_is_timed_but_for_the_first() -> None:
    """What a CUDA graph is to a GPU: here the recorded call does nothing, so that all but the first are wrong."""
    device = open_device("gloo", 0)
    plan = replace(PLAN, ops=("all_gather",), sizes_bytes=(1 << 10,))
    (point,) = measured(ready(plan, replace(device, record=lambda _: lambda: None)))
    assert point.wrong == 6 * 256


def test_before_each_batch_the_buffers_leave_the_cache() -> None:
    device, seen = open_device("gloo", 0), list[str]()

    def time_calls(calls: Calls, progress: ProgressPage) -> list[float]:
        seen.append("calls")
        return device.time_calls(calls, progress)

    plan = replace(PLAN, ops=("all_reduce",), sizes_bytes=(64,), warmup=1)
    measured(ready(plan, replace(device, time_calls=time_calls, evict=lambda: seen.append("evict"))))
    assert seen == ["evict", "calls"] * 3  # first call, warm-up, the six iterations


def test_the_samples_of_a_point_are_its_iterations() -> None:
    for point in measured(ready(PLAN)):
        assert isinstance(point.samples_us, tuple)
        assert len(point.samples_us) == point.iters
        assert max(point.samples_us) == pytest.approx(point.time_us.max, rel=0.01)
        assert point.busbw_low_gb_s is not None


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_plan_that_no_memory_holds_raises_before_anything_is_sent() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)memory|alloc|storage"):
        ready(replace(PLAN, sizes_bytes=(1 << 58,)))


def test_where_calls_overlap_each_further_batch_has_a_lead_in_that_is_not_counted() -> None:
    """In a broadcast the root runs ahead of those who pass on what they receive, until a barrier."""
    device, made = open_device("gloo", 0), list[list[int]]()

    def time_calls(calls: Calls, progress: ProgressPage) -> list[float]:
        made.append([iteration for iteration, _ in calls])
        return device.time_calls(calls, progress)

    plan = replace(PLAN, ops=("broadcast",), sizes_bytes=(64,), warmup=0, iters=40)
    (point,) = measured(ready(plan, replace(device, time_calls=time_calls)))
    assert made == [[0], list(range(1, 32)), [31, *range(32, 41)]]
    assert (point.iters, point.wrong) == (40, 0)
