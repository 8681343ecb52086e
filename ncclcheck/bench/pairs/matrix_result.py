"""From the rounds of `matrix`, which name tickets, to the result, which names hosts; and which plan leads them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from ncclcheck.bench.pairs.pair_result import pair_isolation
from ncclcheck.bench.pairs.pair_rounds import Lost, Rounds
from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.measure.matrix.bisection import Bisection
from ncclcheck.measure.matrix.matrix_plan import LEAST_NODES, MatrixPlan, conclude_matrix, matrix_plan
from ncclcheck.measure.matrix.rail_table import RailTable
from ncclcheck.measure.matrix.round_trips import RoundTrips, round_trips_of
from ncclcheck.model.benchmarks.isolation import IsolateRequest
from ncclcheck.model.benchmarks.matrix import (
    FabricMatrix,
    MatrixCell,
    MatrixNode,
    MatrixPath,
    OpenPath,
    Oversubscription,
    RailRate,
    RailRates,
    RoundTripTimes,
    SwappedRail,
)
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot

_DIGITS = 4
_NUMBER = re.compile(r"(\d+)")


def plan_for(request: IsolateRequest, host_of: Mapping[int, str]) -> Plan:
    """Return what is asked of these hosts (by ticket): the matrix in the order of their names, or who is bad."""
    if request.matrix is None:
        return Plan(request.seed, request.effect, request.most_rounds, request.screen, request.rings)
    order = sorted(host_of, key=lambda ticket: _natural(host_of[ticket]))
    full = {"auto": None, "full": True, "leaves": False}[request.matrix]
    return matrix_plan(order, full=full)


def with_rounds(snapshot: Snapshot, host_of: Mapping[int, str], plan: Plan, rounds: Rounds) -> Snapshot:
    """Return the snapshot with what the rounds of this plan say so far."""
    if isinstance(plan, MatrixPlan):
        return replace(snapshot, matrix=fabric_matrix(host_of, plan, rounds))
    return replace(snapshot, isolation=pair_isolation(host_of, plan, rounds))


def fabric_matrix(host_of: Mapping[int, str], plan: MatrixPlan, rounds: Rounds) -> Fact[FabricMatrix]:
    """Return what the rounds say of these hosts; Missing where no test finished and nobody was lost."""
    members = [ticket for ticket in plan.order if ticket not in rounds.missing]
    tests = [test for test in rounds.tests if not rounds.missing & {test.first, test.second}]
    found = conclude_matrix(plan, members, tests)
    if found is None:
        return _only_lost(host_of, members, rounds)
    is_finished = rounds.is_finished and found.is_decided and not rounds.unheard
    nodes = [MatrixNode(host_of[row.member], row.sends, row.receives) for row in found.rows]
    nodes += [_lost(host_of, gone) for gone in rounds.lost]
    return FabricMatrix(
        round(found.scale.reference_gbit_s, _DIGITS),
        round(found.scale.spread, _DIGITS),
        tuple(tuple(host_of[member] for member in group) for group in found.leaves.groups),
        found.leaves.is_flat and is_finished and len(members) >= LEAST_NODES,
        tuple(host_of[member] for member in found.leaves.apart),
        round(found.leaves.crossing_slow, _DIGITS),
        _oversubscription(found.bisection),
        tuple(host_of[member] for member in found.leaves.order),
        tuple(sorted(nodes, key=lambda node: node.host)),
        tuple(
            MatrixPath(
                host_of[cell.source],
                host_of[cell.target],
                None if cell.part is None else round(cell.part, _DIGITS),
                round(cell.usual_gbit_s, _DIGITS),
                cell.tests,
                cell.slow,
            )
            for cell in found.cells
        ),
        _cells(host_of, rounds),
        max((test.round for test in rounds.tests), default=0),
        is_finished,
        tuple(
            OpenPath(host_of[cell.source], host_of[cell.target], cell.slow, cell.tests)
            for cell in found.open_cells
        ),
        _round_trips(host_of, found.trips),
        _rails(host_of, found.rails),
        tuple(
            replace(
                uplink,
                across_gbit_s=round(uplink.across_gbit_s, _DIGITS),
                usual_gbit_s=round(uplink.usual_gbit_s, _DIGITS),
            )
            for uplink in found.uplinks
        ),
        rounds.unheard_hosts(host_of),
    )


def _round_trips(host_of: Mapping[int, str], found: RoundTrips | None) -> RoundTripTimes | None:
    if found is None:
        return None
    return RoundTripTimes(
        round(found.median_us, 1),
        None if found.within_us is None else round(found.within_us, 1),
        None if found.across_us is None else round(found.across_us, 1),
        tuple(tuple(host_of[member] for member in group) for group in found.groups),
    )


def _rails(host_of: Mapping[int, str], found: RailTable | None) -> RailRates | None:
    if found is None:
        return None
    return RailRates(
        tuple(
            RailRate(
                rail.number, round(rail.rate_gbit_s, _DIGITS), tuple(host_of[member] for member in rail.slow)
            )
            for rail in found.rails
        ),
        None if found.cross_gbit_s is None else round(found.cross_gbit_s, _DIGITS),
        tuple(SwappedRail(host_of[swap.member], swap.gpu, swap.rail) for swap in found.swapped),
    )


def _only_lost(host_of: Mapping[int, str], members: Sequence[int], rounds: Rounds) -> Fact[FabricMatrix]:
    """Return the result where no test between nodes that answer finished: who was lost, and nothing of the others."""
    unheard = rounds.unheard_hosts(host_of)
    if not rounds.lost:
        why = "" if unheard is None else f": {', '.join(unheard.hosts)} fell silent: {unheard.words}"
        return Missing("error", f"no pair of nodes finished a test{why}")
    nodes = sorted((_lost(host_of, gone) for gone in rounds.lost), key=lambda node: node.host)
    return FabricMatrix(
        0.0,
        0.0,
        (),
        False,
        tuple(host_of[member] for member in members),
        0.0,
        None,
        (),
        tuple(nodes),
        (),
        _cells(host_of, rounds),
        max((test.round for test in rounds.tests), default=0),
        rounds.is_finished,
        unheard=unheard,
    )


def _natural(host: str) -> tuple[tuple[int, str], ...]:
    """Return a key by which node2 comes before node10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(host))


def _lost(host_of: Mapping[int, str], gone: Lost) -> MatrixNode:
    return MatrixNode(
        host_of[gone.ticket],
        sends_slowly=False,
        receives_slowly=False,
        outcome=gone.outcome,
        detail=gone.detail,
    )


def _oversubscription(found: Bisection | None) -> Oversubscription | None:
    if found is None:
        return None
    rates = (round(found.within_gbit_s, _DIGITS), round(found.across_gbit_s, _DIGITS))
    back = None if found.back_gbit_s is None else round(found.back_gbit_s, _DIGITS)
    return Oversubscription(
        *rates,
        round(found.ratio, 3),
        round(found.low, 3),
        round(found.high, 3),
        found.repeats,
        found.slow_from,
        back,
    )


def _cells(host_of: Mapping[int, str], rounds: Rounds) -> tuple[MatrixCell, ...]:
    rates: defaultdict[tuple[int, int], list[float | None]] = defaultdict(list)
    straight = [test for test in rounds.tests if not test.rail_shift]
    trips = round_trips_of(straight)
    for test in straight:
        forth, back = test.rates_gbit_s or (None, None)
        rates[test.first, test.second].append(forth)
        rates[test.second, test.first].append(back)
    return tuple(
        MatrixCell(
            host_of[source],
            host_of[target],
            _median(values),
            len(values),
            None
            if (trip := trips.get((min(source, target), max(source, target)))) is None
            else round(trip, 1),
        )
        for (source, target), values in sorted(rates.items())
    )


def _median(values: list[float | None]) -> float | None:
    finished = [value for value in values if value is not None]
    return round(median(finished), _DIGITS) if finished else None
