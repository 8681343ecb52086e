"""The communication of a step."""

from __future__ import annotations

import pytest

from ncclcheck.measure.mesh.step_time import step_time
from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshPoint


def point(per_step: int, time_us: float, unsupported: str = "") -> MeshPoint:
    slowest = GroupTime(0, (0, 1), ("a",), 1, time_us, time_us * 0.9, time_us * 1.2, 1.0, 0)
    return MeshPoint(
        "dp", "all_reduce", 1, 2, 1, 5, 1.0, 1.0, (slowest,), per_step=per_step, unsupported=unsupported
    )


def test_it_is_the_sum_of_all_calls_of_a_step() -> None:
    found = step_time([point(10, 1000), point(2, 50_000)])
    assert found is not None
    assert (found.seconds, found.low_s, found.high_s) == pytest.approx((0.11, 0.099, 0.132))


def test_without_a_model_or_with_a_gap_there_is_none() -> None:
    assert step_time([point(0, 1000)]) is None
    assert step_time([point(1, 1000), point(1, 1000, "no")]) is None


def test_what_is_not_counted_is_named() -> None:
    found = step_time([point(1, 1000)], ("pp", "head"))
    assert found is not None
    assert found.not_counted == ("pp", "head")
