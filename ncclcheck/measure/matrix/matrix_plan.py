"""Which pairs `matrix` measures next, and what all rounds together say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.measure.isolation.next_round import Plan, Round
from ncclcheck.measure.isolation.pair_tests import FEW_TRANSFERS, PairTest
from ncclcheck.measure.matrix.bisection import (
    FEW_WITHIN,
    REPEATS,
    WITHIN_REPEATS,
    Bisection,
    across,
    bisection_of,
    with_apart,
    within,
)
from ncclcheck.measure.matrix.cells import CellScale, cell_scale
from ncclcheck.measure.matrix.leaves import Leaves, leaves_of
from ncclcheck.measure.matrix.rail_table import RailTable, rail_table, shift_round
from ncclcheck.measure.matrix.round_trips import RoundTrips, round_trips
from ncclcheck.measure.matrix.slow_cells import (
    Kinds,
    OpenCell,
    SlowCell,
    SlowRow,
    open_cells,
    pairs_again,
    slow_cells,
    slow_rows,
)
from ncclcheck.measure.matrix.tournament import tournament_round, tournament_rounds
from ncclcheck.measure.matrix.units import (
    MOST_UNITS,
    NEIGHBOUR_ROUNDS,
    leaves_of_units,
    neighbour_round,
    unit_round,
)
from ncclcheck.measure.matrix.uplinks import leaf_uplinks
from ncclcheck.model.benchmarks.matrix import LeafUplink

RoundKind: TypeAlias = Literal["all", "units", "within", "across", "rails", "again"]
FULL_NODES = 64  # of so many nodes all pairs are measured
LEAST_NODES = 4  # fewer have no two leaves
MOST_UNIT_ROUNDS = 120  # names that follow the switches take 20 to 30, others up to 100
MOST_TOURNAMENTS = (
    2  # so many times the rounds that all pairs take: nodes that are often silent miss some for good
)
ROUND_TRIPS = 200  # of each test
ALL_TRANSFERS = (
    2  # counted parts of a test where all nodes meet: many tests tell a leaf, and slow paths come again
)
MOST_ACROSS = 2 * REPEATS  # where the leaves change while they are measured


class MatrixPlan(Plan, frozen=True):
    """The nodes in their order, and whether all pairs are measured; `kinds`: what each planned round was for."""

    order: tuple[int, ...] = ()
    full: bool = True
    kinds: dict[int, str] = {}  # noqa: RUF012 (msgspec copies it)

    def following(self, members: Sequence[int], tests: Sequence[PairTest]) -> Round:
        """Return the next round."""
        return next_matrix_round(self, members, tests)


class MatrixFound(Struct, frozen=True):
    """What all rounds say.

    Leaves and their uplinks, the bisection, slow nodes and paths, paths that stayed open, round trips and rails.
    """

    scale: CellScale
    leaves: Leaves
    bisection: Bisection | None
    rows: tuple[SlowRow, ...]
    cells: tuple[SlowCell, ...]
    open_cells: tuple[OpenCell, ...] = ()
    trips: RoundTrips | None = None
    rails: RailTable | None = None
    uplinks: tuple[LeafUplink, ...] = ()
    is_decided: bool = True  # False: the rounds ran out before the leaves were known


def matrix_plan(order: Sequence[int], *, full: bool | None = None) -> MatrixPlan:
    """Return the plan for these nodes: all pairs of few nodes, or if asked for; else the leaves only."""
    is_full = len(order) <= FULL_NODES if full is None else full
    return MatrixPlan(seed=0, order=tuple(order), full=is_full, kinds={})


def next_matrix_round(plan: MatrixPlan, members: Sequence[int], tests: Sequence[PairTest]) -> Round:
    """Return the next round for the members that still answer, and note its kind in the plan. No pairs: the end."""
    number = max((test.round for test in tests), default=0) + 1
    plan.kinds.pop(number, None)
    present = frozenset(members)
    order = [member for member in plan.order if member in present]
    if len(order) < 2:  # noqa: PLR2004 (a pair)
        return Round(number, (), "")
    straight = _straight(tests)
    kind, planned = _structure(plan, order, number, straight)
    shift = 0
    if not planned:
        kind, planned = _after_structure(plan, order, straight)
    if not planned:
        kind, (shift, planned) = "rails", shift_round(tests, order)
    pairs = tuple(pair for pair in planned if present.issuperset(pair))
    if pairs:
        plan.kinds[number] = kind
    return Round(
        number,
        pairs,
        _WHY[kind],
        transfers=ALL_TRANSFERS if kind == "all" else FEW_TRANSFERS,
        at_once=kind == "units",
        round_trips=ROUND_TRIPS,
        rail_shift=shift,
        together=True,
    )


_WHY: dict[RoundKind, str] = {
    "all": "all nodes, each pair once",
    "units": "which nodes are behind one switch",
    "within": "all nodes within their leaves",
    "across": "all nodes across leaves",
    "again": "the slowest paths again",
    "rails": "GPUs of different rails",
}


def _structure(
    plan: MatrixPlan, order: Sequence[int], number: int, tests: Sequence[PairTest]
) -> tuple[RoundKind, tuple[tuple[int, int], ...]]:
    """Return a round that helps to find the leaves; none where they are known."""
    if plan.full:
        return "all", _tournament(plan, order, tests)
    if number <= NEIGHBOUR_ROUNDS:
        return "units", neighbour_round(order, number - 1, tests)
    scale = cell_scale(_of_units(plan, tests))
    if scale is None or number > MOST_UNIT_ROUNDS or {"within", "across"} & set(plan.kinds.values()):
        return "units", ()
    return "units", unit_round(order, tests, scale)


def _tournament(
    plan: MatrixPlan, order: Sequence[int], tests: Sequence[PairTest]
) -> tuple[tuple[int, int], ...]:
    """Return the first round of the tournament in which two present nodes were not yet paired; none where all were.

    So rounds of lost nodes alone are skipped, and those that a node missed for a while are made up. All their pairs
    are measured once more then, since a trunk shows only while it is loaded.
    """
    rounds = {number for number, kind in plan.kinds.items() if kind == "all"}
    if len(rounds) >= MOST_TOURNAMENTS * tournament_rounds(len(plan.order)):
        return ()
    present = frozenset(order)
    tested = {test.pair for test in tests if test.round in rounds}
    for number in range(tournament_rounds(len(plan.order))):
        pairs = [pair for pair in tournament_round(plan.order, number) if present.issuperset(pair)]
        if any((min(pair), max(pair)) not in tested for pair in pairs):
            return tuple(pairs)
    return ()


def _after_structure(
    plan: MatrixPlan, order: Sequence[int], tests: Sequence[PairTest]
) -> tuple[RoundKind, tuple[tuple[int, int], ...]]:
    """Return a round of the bisection, or of the slowest paths again; none at the end."""
    known = _known(plan, order, tests)
    if known is None or len(order) < LEAST_NODES:
        return "again", pairs_again(known) if known is not None else ()
    done = [kind for kind in plan.kinds.values() if kind in ("within", "across")]
    repeats = {kind: done.count(kind) for kind in ("within", "across")}
    bisection = bisection_of(known.leaves, tests, plan.kinds)
    if (bisection is None or not bisection.is_enough) and repeats["across"] < MOST_ACROSS:
        least_repeats = WITHIN_REPEATS if known.leaves.apart else FEW_WITHIN
        is_next = repeats["within"] < least_repeats and repeats["within"] <= repeats["across"]
        if is_next and (pairs := within(known.leaves, repeats["within"])):
            return "within", with_apart(pairs, known.leaves.apart, repeats["within"])
        if pairs := across(known.leaves, repeats["across"]):
            return "across", pairs
    return "again", pairs_again(known)


def conclude_matrix(
    plan: MatrixPlan, members: Sequence[int], tests: Sequence[PairTest]
) -> MatrixFound | None:
    """Return what these tests of the members say; None where none finished."""
    present = frozenset(members)
    order = [member for member in plan.order if member in present]
    known = _known(plan, order, straight := _straight(tests))
    if known is None:
        return None
    rows = slow_rows(known)
    return MatrixFound(
        known.scale,
        known.leaves,
        bisection_of(known.leaves, straight, plan.kinds),
        rows,
        slow_cells(known),
        open_cells(known),
        round_trips(known.leaves, straight),
        rail_table(tests),
        leaf_uplinks(known.leaves, straight, plan.kinds, {row.member for row in rows}),
        _is_decided(plan, known.leaves),
    )


def _straight(tests: Sequence[PairTest]) -> list[PairTest]:
    """Return the tests between GPUs of the same rail."""
    return [test for test in tests if not test.rail_shift]


def _is_decided(plan: MatrixPlan, leaves: Leaves) -> bool:
    """Return whether the units were compared until nothing was open."""
    rounds = sum(kind == "units" for kind in plan.kinds.values())
    units = len(leaves.groups) + len(leaves.apart)
    return plan.full or (rounds < MOST_UNIT_ROUNDS and units <= MOST_UNITS)


def _known(plan: MatrixPlan, order: Sequence[int], tests: Sequence[PairTest]) -> Kinds | None:
    scale = cell_scale(tests)
    if scale is None:
        return None
    if len(order) < LEAST_NODES:
        return Kinds(tests, plan.kinds, Leaves((tuple(order),)), scale)
    if plan.full:
        return Kinds(tests, plan.kinds, leaves_of(order, tests, scale), scale)
    return _known_of_units(plan, order, tests)


def _known_of_units(plan: MatrixPlan, order: Sequence[int], tests: Sequence[PairTest]) -> Kinds | None:
    """Return the leaves that the units are. Rates in both directions at once are not compared with those of one."""
    of_units = _of_units(plan, tests)
    unit_scale = cell_scale(of_units)
    if unit_scale is None:
        return None
    one_way = [test for test in tests if plan.kinds.get(test.round) != "units"]
    leaves = leaves_of_units(order, of_units, unit_scale)
    return Kinds(one_way or tests, plan.kinds, leaves, cell_scale(one_way) or unit_scale)


def _of_units(plan: MatrixPlan, tests: Sequence[PairTest]) -> list[PairTest]:
    return [test for test in tests if plan.kinds.get(test.round) == "units"]
