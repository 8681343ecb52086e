"""Clocks of many nodes, related to each other from measured pairs."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from ncclcheck.measure.links.clocks import Deviation, deviations


def ring(ahead_us: dict[str, float], bound_us: float = 20.0) -> dict[tuple[str, str], tuple[float, float]]:
    hosts = list(ahead_us)
    pairs = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
    return {(one, other): (ahead_us[other] - ahead_us[one], bound_us) for one, other in pairs}


def test_the_one_that_is_off_is_told_from_those_that_agree() -> None:
    found = {
        deviation.host: deviation
        for deviation in deviations(ring({"a": 0.0, "b": 5.0, "c": 9e6, "d": -5.0, "e": 0.0}))
    }
    assert [host for host, one in found.items() if one.is_beyond(1e6)] == ["c"]
    assert found["c"].ahead_us == pytest.approx(9e6, abs=10)


def test_bounds_add_up_along_the_way_and_count() -> None:
    found = {deviation.host: deviation for deviation in deviations(ring(dict.fromkeys("abcdefghi", 0.0)))}
    assert max(one.bound_us for one in found.values()) == 80.0  # four steps round a ring of nine
    assert not Deviation("x", 1_500_000.0, 600_000.0).is_beyond(1e6)
    assert Deviation("x", -1_700_000.0, 600_000.0).is_beyond(1e6)


def test_a_pair_measured_twice_counts_by_its_closer_bound() -> None:
    found = deviations({("a", "b"): (100.0, 90.0), ("b", "a"): (-40.0, 5.0)})
    assert found == (Deviation("a", 0.0, 0.0), Deviation("b", 40.0, 5.0))


def test_nodes_that_nothing_connects_are_not_compared() -> None:
    offsets = {**ring({"a": 0.0, "b": 1.0, "c": 2.0}), ("x", "y"): (5e9, 1.0)}
    assert {deviation.host for deviation in deviations(offsets)} == {"a", "b", "c"}
    assert deviations({}) == ()


@pytest.mark.parametrize("seed", range(20))
def test_true_offsets_are_always_within_the_bound(seed: int) -> None:
    """Whatever the clocks and the ways are, and however each way's time is split."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    truth = {f"n{number}": draw.uniform(-1e7, 1e7) for number in range(draw.randint(2, 12))}
    offsets = {}
    hosts = list(truth)
    pairs = pairwise(hosts)
    for one, other in [*pairs, *(tuple(draw.sample(hosts, 2)) for _ in range(5))]:
        trip = draw.uniform(1, 1e5)
        offsets[one, other] = truth[other] - truth[one] + draw.uniform(-trip / 2, trip / 2), trip / 2
    found = deviations(offsets)
    assert len(found) == len(truth)
    zero = next(deviation.host for deviation in found if deviation.bound_us == 0)
    for deviation in found:
        assert abs(deviation.ahead_us - (truth[deviation.host] - truth[zero])) <= deviation.bound_us + 1e-6
