"""The figures of a point from hand-made reports of its batches."""

from __future__ import annotations

import math

import pytest

from ncclcheck.bench.agreement import BatchReport
from ncclcheck.bench.point_result import Batch, PointOf, result_of
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.model.bench import BenchPlan, Point

PLAN = BenchPlan("nccl", ("all_reduce",), (1024,), "float32", 0, None, 1.0, verify=True)
TASK = WorkerTask(0, 1, 0, "127.0.0.1", 1, "t/", PLAN, ("node01",))


def report(*durations_us: float, launch_bound: bool = False, got: float = 1.0) -> BatchReport:
    wrong = float(got != 1.0)
    return BatchReport(
        0.0, 0.0, 0.0, wrong, 1.0, 7.0, got, 1.0, 0.0, 1980.0, float(launch_bound), list(durations_us)
    )


def point_of(*batches: Batch) -> Point:
    collective = COLLECTIVES["all_reduce"]
    return result_of(PointOf(TASK, collective, collective.sizing(1024, 4, 1), 50.0), batches, None)


def test_the_mean_is_of_loops_and_the_spread_of_single_calls() -> None:
    point = point_of(Batch([report(10.0, 10.0)], loop=True), Batch([report(11.0, 13.0)]))
    assert (point.time_us.mean, point.time_us.min, point.time_us.max) == (10.0, 11.0, 13.0)
    assert (point.iters, point.samples_us, point.ranks[0].clock_mhz) == (4, (11.0, 13.0), 1980.0)


def test_loops_alone_tell_both() -> None:
    point = point_of(Batch([report(10.0, 10.0)], loop=True))
    assert (point.time_us.mean, point.time_us.max, point.iters) == (10.0, 10.0, 2)


def test_a_batch_that_waited_for_its_host_counts_only_where_there_is_no_other() -> None:
    bound = Batch([report(90.0, launch_bound=True)])
    good = point_of(bound, Batch([report(10.0)]))
    assert (good.time_us.mean, good.iters, good.unstable) == (10.0, 1, None)
    said = point_of(bound).unstable
    assert said is not None
    assert said.startswith("in 1 of 1 batches a GPU waited until its host had enqueued the calls")


@pytest.mark.parametrize(
    ("got", "text"), [(math.nextafter(1.0, 2.0), "1.0000000000000002"), (5700.0, "5700"), (math.nan, "nan")]
)
def test_a_wrong_number_is_told_with_all_its_digits(got: float, text: str) -> None:
    first = point_of(Batch([report(1.0, got=got)])).first_wrong
    assert first is not None
    assert (first.got, first.expected) == (text, "1")
