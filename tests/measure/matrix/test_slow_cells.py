"""A slow path is named with its direction when it was slow again; a slow node is named instead of its paths."""

from __future__ import annotations

from itertools import combinations

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.cells import CellScale
from ncclcheck.measure.matrix.leaves import Leaves
from ncclcheck.measure.matrix.slow_cells import (
    Kinds,
    OpenCell,
    SlowRow,
    open_cells,
    pairs_again,
    slow_cells,
    slow_rows,
)

ALL = [PairTest(1, *pair, 100.0, 50.0 if pair == (2, 4) else 100.0) for pair in combinations(range(6), 2)]


def known(*again: PairTest, leaves: Leaves | None = None) -> Kinds:
    kinds = {1: "all", 2: "again", 3: "again"}
    return Kinds((*ALL, *again), kinds, leaves or Leaves((tuple(range(6)),)), CellScale(100.0, 0.01))


def test_a_slow_path_is_measured_again_until_it_is_named_or_cleared() -> None:
    slow, fast = PairTest(2, 4, 2, 52.0, 100.0), PairTest(2, 4, 2, 99.0, 100.0)
    assert pairs_again(known()) == ((4, 2),)
    assert slow_cells(known()) == ()
    assert pairs_again(known(fast)) == ()
    assert slow_cells(known(slow, fast)) == ()
    (found,) = slow_cells(known(slow, slow))
    assert (found.source, found.target, found.part, found.tests) == (4, 2, 0.52, 3)
    assert pairs_again(known(slow, slow)) == ()


def test_a_path_that_was_slow_in_some_repeats_or_has_none_stays_open() -> None:
    slow, fast = PairTest(2, 4, 2, 52.0, 100.0), PairTest(2, 4, 2, 99.0, 100.0)
    assert open_cells(known(slow, fast)) == (OpenCell(4, 2, 2, 3),)
    assert open_cells(known()) == (OpenCell(4, 2, 1, 1),)
    assert open_cells(known(slow)) == (OpenCell(4, 2, 2, 2),)
    assert open_cells(known(fast)) == ()
    assert open_cells(known(slow, slow)) == ()


def test_nothing_comes_through() -> None:
    (found, back) = slow_cells(
        known(*[PairTest(2, 4, 2, outcome="hang")] * 2, *[PairTest(1, 2, 4, outcome="hang")])
    )
    assert {found.part, back.part} == {None}


def test_paths_of_a_node_that_is_apart_are_not_named() -> None:
    leaves = Leaves(((0, 1, 2, 3, 5),), (4,))
    assert pairs_again(known(leaves=leaves)) == ()
    assert slow_rows(known(leaves=leaves)) == ()
    rows = [PairTest(1, 4, member, 40.0, 100.0) for member in range(4)]
    judged = Kinds(rows, {1: "all"}, leaves, CellScale(100.0, 0.01))
    assert slow_rows(judged) == (SlowRow(4, sends=True, receives=False),)
