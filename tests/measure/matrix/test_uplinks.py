"""A leaf behind a slow uplink is named, and no other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.leaves import Leaves
from ncclcheck.measure.matrix.uplinks import leaf_uplinks
from tests.measure.matrix.fabric import Fabric, play

FOUR_LEAVES = Fabric((4, 4, 4, 4), oversubscribed=2.0)
TWO_OF_EACH = Leaves(((0, 1), (2, 3), (4, 5)))


def slow_leaves(fabric: Fabric, seed: int) -> list[tuple[int, str]]:
    """The first node of each leaf that is named, and the direction."""
    found = play(fabric, seed).found
    return [(found.leaves.groups[uplink.leaf][0], uplink.slow) for uplink in found.uplinks if uplink.slow]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("leaves", [(4, 4, 4), (4, 4, 4, 4), (8, 4, 4), (16, 16, 16, 16)])
def test_equal_uplinks_name_nobody(leaves: tuple[int, ...], seed: int) -> None:
    assert slow_leaves(Fabric(leaves, oversubscribed=2.0), seed) == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("leaves", "slow", "first"), [((4, 4, 4), 0, 0), ((4, 4, 4, 4), 3, 12), ((16, 16, 16, 16), 1, 16)]
)
def test_a_leaf_with_half_an_uplink_is_named_alone(
    leaves: tuple[int, ...], slow: int, first: int, seed: int
) -> None:
    fabric = Fabric(leaves, oversubscribed=2.0, uplinks={slow: 0.5})
    assert slow_leaves(fabric, seed) == [(first, "both")]


def test_a_larger_leaf_behind_the_usual_uplink_is_not_named() -> None:
    assert slow_leaves(Fabric((8, 4, 4), oversubscribed=2.0, uplinks={0: 0.5}), seed=0) == []


def test_a_slow_node_does_not_make_its_leaf_slow() -> None:
    assert slow_leaves(replace(FOUR_LEAVES, sends={1: 0.5}, receives={1: 0.5}), seed=0) == []


def test_of_two_leaves_nobody_can_tell() -> None:
    assert play(Fabric((8, 8), oversubscribed=2.0, uplinks={0: 0.5}), seed=0).found.uplinks == ()


def test_a_leaf_that_is_slow_in_one_direction_is_named_with_it() -> None:
    pairs = [(0, 2), (1, 4), (3, 5)]
    tests = [
        PairTest(number, *pair, 25.0 if 0 in pair or 1 in pair else 100.0, 100.0)
        for number in (1, 2)
        for pair in pairs
    ]
    uplinks = leaf_uplinks(TWO_OF_EACH, tests, {1: "across", 2: "across"}, set())
    assert [(uplink.leaf, uplink.slow) for uplink in uplinks] == [(0, "send"), (1, None), (2, None)]


def test_one_repeat_is_not_enough() -> None:
    tests = [PairTest(1, 0, 2, 25.0, 25.0), PairTest(1, 3, 5, 100.0, 100.0)]
    assert leaf_uplinks(TWO_OF_EACH, tests, {1: "across"}, set()) == ()
