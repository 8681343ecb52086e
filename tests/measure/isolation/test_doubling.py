"""Rings of doubling size over a scripted network: from how many nodes on it is slow, and nothing where it is sound."""

from __future__ import annotations

import math
import random

import pytest

from ncclcheck.measure.isolation.doubling import RingTest, next_ring, only_from, ring_sizes
from ncclcheck.measure.isolation.next_round import Plan

RUNS = 100


def played(
    nodes: int, seed: int, slow_from: int = 0, noise: float = 0.02, disturbed: float = 0.02
) -> list[RingTest]:
    """Rings in which `slow_from` nodes and more reach 70 %, some are disturbed, and each node's rate varies."""
    plan, draw = Plan(seed), random.Random(f"rings {seed}")  # noqa: S311
    tests: list[RingTest] = []
    while ring := next_ring(plan, range(nodes), tests, noise):
        assert len(set(ring)) == len(ring)
        left = 0.7 if slow_from and len(ring) >= slow_from else 1.0
        left *= 0.7 if draw.random() < disturbed else 1.0
        slowest = min(math.exp(draw.gauss(0, noise / 1.4)) for _ in ring)
        tests.append(RingTest(len(tests) + 1, ring, 100 * left * slowest))
    return tests


def test_the_sizes_double_up_to_all_members() -> None:
    assert ring_sizes(2) == (2,)
    assert ring_sizes(3) == (2, 3)
    assert ring_sizes(8) == (2, 4, 8)
    assert ring_sizes(20) == (2, 4, 8, 16, 20)


@pytest.mark.parametrize("nodes", [3, 8, 16, 100, 1024])
def test_a_sound_network_is_sound_at_every_size(nodes: int) -> None:
    runs = [played(nodes, seed) for seed in range(RUNS)]
    assert [only_from(Plan(seed), nodes, tests, 0.02) for seed, tests in enumerate(runs)] == [None] * RUNS
    assert {ring_sizes(nodes)[-1] == len(tests[-1].members) or len(tests) > 3 for tests in runs} == {True}


@pytest.mark.parametrize(
    ("nodes", "slow_from"), [(8, 8), (8, 4), (16, 8), (100, 64), (100, 100), (1024, 256)]
)
def test_the_size_from_which_on_it_is_slow_is_found(nodes: int, slow_from: int) -> None:
    runs = [played(nodes, seed, slow_from) for seed in range(RUNS)]
    found = [only_from(Plan(seed), nodes, tests, 0.02) for seed, tests in enumerate(runs)]
    assert sum(size == slow_from for size in found) >= 0.97 * RUNS
    assert max(len(tests) for tests in runs) <= len(ring_sizes(nodes)) + 8


def test_a_ring_that_never_finishes_is_slow_from_its_size_on() -> None:
    tests: list[RingTest] = []
    while ring := next_ring(Plan(1), range(8), tests, 0.01):
        tests.append(
            RingTest(
                len(tests) + 1, ring, 100.0 if len(ring) < 8 else None, "ok" if len(ring) < 8 else "hang"
            )
        )
    assert only_from(Plan(1), 8, tests, 0.01) == 8


def test_where_nothing_finishes_it_ends_without_an_answer() -> None:
    tests: list[RingTest] = []
    while ring := next_ring(Plan(1), range(8), tests, 0.01):
        tests.append(RingTest(len(tests) + 1, ring, None, "hang"))
    assert len(tests) == 3
    assert only_from(Plan(1), 8, tests, 0.01) is None
