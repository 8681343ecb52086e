"""Figures of groups from what all ranks reported."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.bench.agreement import BatchReport
from ncclcheck.bench.groups.group_result import (
    MOST_GROUPS,
    CallOf,
    better_of,
    group_time,
    group_times,
    mesh_point,
    unsupported,
)
from ncclcheck.measure.busbw import whole_buffer
from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshCall

CALL = MeshCall("dp", "all_reduce", 4_000_000, 12, "gradients of a layer")
OF = CallOf(CALL, whole_buffer(4_000_000, 4, 2), ((0, 2), (1, 3)), ("a", "a", "b", "b"), verified=True)


def report(durations_us: list[float], wrong: float = 0.0) -> BatchReport:
    return BatchReport(0.0, 0.0, 0.0, wrong, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, durations_us)


def batch(*durations_us: float, wrong: float = 0.0) -> list[BatchReport]:
    """A batch of ten calls in which each rank takes its time; what is wrong, rank 3 has received."""
    return [report([us] * 10, wrong if rank == 3 else 0.0) for rank, us in enumerate(durations_us)]


def test_a_group_is_as_slow_as_its_slowest_rank_and_no_other_group() -> None:
    slow, quick = group_times(OF, [batch(1000, 3000, 2000, 3500, wrong=2)])
    assert (slow.group, slow.ranks, slow.hosts, slow.nodes) == (1, (1, 3), ("a", "b"), 2)
    assert (slow.time_us, quick.time_us) == (3500, 2000)
    assert quick.busbw_gb_s == pytest.approx(4_000_000 / 2000 / 1e3)
    assert (slow.wrong, quick.wrong) == (2, 0)


def test_the_better_try_of_each_group_counts() -> None:
    first, second = group_times(OF, [batch(9, 5, 9, 5)]), group_times(OF, [batch(4, 6, 4, 6, wrong=1)])
    best = better_of(first, second)
    assert [(time.group, time.time_us, time.wrong) for time in best] == [(1, 5, 1), (0, 4, 0)]


def test_a_point_has_its_contention() -> None:
    point = mesh_point(OF, group_times(OF, [batch(1, 3, 2, 4)]), 10, group_time(OF, 1, [batch(0, 2, 0, 1)]))
    assert (point.group_count, point.group_size, point.fastest_us, point.median_us) == (2, 2, 2, 3)
    assert (point.alone_us, point.contention, point.per_step) == (2.0, 2.0, 12)
    assert mesh_point(OF, group_times(OF, [batch(1, 3, 2, 4)]), 10, None).contention is None


def test_what_the_backend_does_not_do_has_no_figures() -> None:
    point = unsupported(OF, "gloo cannot")
    assert (point.groups, point.unsupported, point.size_bytes) == ((), "gloo cannot", 4_000_000)


def many(*changed: GroupTime) -> list[GroupTime]:
    """300 groups across two nodes, slowest first, of which these are changed."""
    others = {time.group: time for time in changed}
    usual = (
        GroupTime(number, (number, number + 300), ("a", "b"), 2, 2000 - number, None, None, 1.0, 0)
        for number in range(300)
    )
    return sorted((others.get(time.group, time) for time in usual), key=lambda time: -time.time_us)


def test_a_wrong_group_beyond_the_slowest_is_kept_and_counted() -> None:
    wrong = GroupTime(299, (299, 599), ("a", "b"), 2, 10.0, None, None, 1.0, 7)
    point = mesh_point(OF, many(wrong), 10, None)
    assert (point.wrong, point.wrong_groups, point.groups[-1]) == (7, 1, wrong)
    assert len(point.groups) == MOST_GROUPS + 1


def test_slow_groups_are_found_among_all_and_not_only_the_slowest() -> None:
    """Group 299 is slow beside group 298, the only other inside a node; 256 groups across nodes are slower."""
    inside = (
        GroupTime(298, (298, 598), ("a",), 1, 300.0, None, None, 1.0, 0),
        GroupTime(299, (299, 599), ("b",), 1, 900.0, None, None, 1.0, 0),
    )
    point = mesh_point(replace(OF, on_gpus=True), many(*inside), 10, None)
    assert [(slow.time.group, slow.usual_us, slow.compared) for slow in point.slow] == [(299, 300.0, 1)]
    assert point.judged == 300


def test_the_usual_time_is_the_median_of_all_groups() -> None:
    slowest = GroupTime(0, (0, 300), ("a", "b"), 2, 9000.0, None, None, 1.0, 0)
    point = mesh_point(replace(OF, on_gpus=True), many(slowest), 10, None)
    assert [slow.usual_us for slow in point.slow] == [1850.0]


def test_wrong_elements_of_the_group_alone_are_added() -> None:
    times = group_times(OF, [batch(1, 3, 2, 4, wrong=1)])
    point = mesh_point(OF, times, 10, group_time(OF, 1, [batch(0, 2, 0, 1, wrong=5)]))
    assert (point.wrong, point.wrong_groups, point.groups[0].wrong) == (6, 1, 6)


def test_what_was_not_verified_has_no_count() -> None:
    unverified = replace(OF, verified=False)
    assert mesh_point(unverified, group_times(unverified, [batch(1, 3, 2, 4)]), 10, None).wrong is None
