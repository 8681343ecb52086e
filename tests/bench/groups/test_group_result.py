"""Figures of groups from what all ranks reported."""

from __future__ import annotations

import pytest

from ncclcheck.bench.agreement import BatchReport
from ncclcheck.bench.groups.group_result import CallOf, better_of, group_times, mesh_point, unsupported
from ncclcheck.measure.busbw import whole_buffer
from ncclcheck.model.benchmarks.mesh_bench import MeshCall

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
    point = mesh_point(OF, group_times(OF, [batch(1, 3, 2, 4)]), 10, 2.0)
    assert (point.group_count, point.group_size, point.fastest_us, point.median_us) == (2, 2, 2, 3)
    assert (point.alone_us, point.contention, point.per_step) == (2.0, 2.0, 12)
    assert mesh_point(OF, group_times(OF, [batch(1, 3, 2, 4)]), 10, None).contention is None


def test_what_the_backend_does_not_do_has_no_figures() -> None:
    point = unsupported(OF, "gloo cannot")
    assert (point.groups, point.unsupported, point.size_bytes) == ((), "gloo cannot", 4_000_000)
