"""From the rounds, which name tickets, to the result, which names hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from ncclcheck.bench.pairs.pair_rounds import Rounds
from ncclcheck.measure.isolation.conclusion import Conclusion, Named, conclude
from ncclcheck.measure.isolation.doubling import only_from
from ncclcheck.measure.isolation.evidence import is_bad
from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.measure.isolation.pair_tests import PairTest, Scale, log_part
from ncclcheck.model.benchmarks.isolation import (
    BadGroup,
    BadLink,
    BadNode,
    Coverage,
    IsolationRound,
    NodeVerdict,
    PairIsolation,
    PairOutcome,
    PairRate,
    RingRate,
)

_GBIT_DIGITS = 4


def pair_isolation(host_of: Mapping[int, str], plan: Plan, rounds: Rounds) -> PairIsolation:
    """Return what the rounds say of these hosts (by ticket). A node that was lost is named for that alone."""
    members = [ticket for ticket in host_of if ticket not in rounds.missing]
    tests = [test for test in rounds.tests if not rounds.missing & {test.first, test.second}]
    found = conclude(plan, members, tests)
    named = [_node(host_of, entry, rounds.tests, found.scale) for entry in found.named]
    for gone in rounds.lost:
        verdict: NodeVerdict = "hang" if gone.outcome == "hang" else "died"
        own_tests = sum(gone.ticket in (test.first, test.second) for test in rounds.tests)
        named.append(BadNode(host_of[gone.ticket], verdict, None, own_tests, 0.0, detail=gone.detail))
    count = len(host_of)
    return PairIsolation(
        _rounds(host_of, rounds.tests, found.scale),
        tuple(sorted(named, key=lambda node: node.host)),
        tuple(
            BadLink(host_of[first], host_of[second], "blocked" if blocked else "slow")
            for first, second, blocked in found.links
        ),
        tuple(
            BadGroup(tuple(host_of[member] for member in side), "slow_uplink" if alone else "slow_together")
            for side, alone in found.groups
        ),
        None if found.scale is None else only_from(plan, len(members), rounds.rings, found.scale.spread),
        Coverage(len({test.pair for test in rounds.tests}), count * (count - 1) // 2),
        round(found.chance, 6),
        _undecided(host_of, found, rounds),
        None if found.scale is None else round(found.scale.reference_gbit_s, _GBIT_DIGITS),
        round(found.disturbed, 4),
        plan.seed,
        tuple(
            RingRate(
                ring.round,
                tuple(host_of[member] for member in ring.members),
                _rounded(ring.rate_gbit_s),
                ring.outcome,
            )
            for ring in rounds.rings
        ),
        rounds.unheard_hosts(host_of),
    )


def _undecided(host_of: Mapping[int, str], found: Conclusion, rounds: Rounds) -> tuple[str, ...]:
    """Return the hosts of which the tests do not tell: also those without any test where the rounds were cut short."""
    hosts = {host_of[member] for member in found.undecided}
    hosts |= {host_of[gone.ticket] for gone in rounds.unheard}
    if not rounds.is_finished:
        tested = {end for test in rounds.tests for end in (test.first, test.second)}
        hosts |= {host for ticket, host in host_of.items() if ticket not in tested}
    return tuple(sorted(hosts))


def _node(
    host_of: Mapping[int, str], entry: Named, tests: Sequence[PairTest], scale: Scale | None
) -> BadNode:
    details = (test.detail for test in tests if test.detail and entry.member in test.pair)
    return BadNode(
        host_of[entry.member],
        entry.verdict,
        entry.direction,
        entry.tests,
        round(entry.chance, 6),
        None if entry.sends is None else round(entry.sends, 3),
        None if entry.receives is None else round(entry.receives, 3),
        next(details, ""),
        _slow_rails(entry, tests, scale),
    )


def _slow_rails(entry: Named, tests: Sequence[PairTest], scale: Scale | None) -> tuple[int, ...]:
    """Return the GPUs of a slow node whose rails are slow, in the median of its tests; none where all are."""
    node_tests = [test for test in tests if entry.member in test.pair and test.rails]
    if scale is None or not node_tests or entry.verdict not in ("slow", "intermittent"):
        return ()
    rails = range(min(len(test.rails) for test in node_tests))
    usual = [log_part(median(min(test.rails[rail]) for test in node_tests), scale) for rail in rails]
    slow = tuple(rail for rail in rails if usual[rail] < scale.cut)
    return slow if len(slow) < len(rails) else ()


def _rounds(
    host_of: Mapping[int, str], tests: tuple[PairTest, ...], scale: Scale | None
) -> tuple[IsolationRound, ...]:
    of: dict[int, list[PairRate]] = {}
    for test in tests:
        outcome: PairOutcome = "slow" if test.outcome == "ok" and is_bad(test, scale) else test.outcome
        first, second = host_of[test.first], host_of[test.second]
        forth, back = _rounded(test.forth_gbit_s), _rounded(test.back_gbit_s)
        of.setdefault(test.round, []).append(PairRate(first, second, forth, back, outcome))
    return tuple(IsolationRound(number, tuple(pairs)) for number, pairs in sorted(of.items()))


def _rounded(rate_gbit_s: float | None) -> float | None:
    return None if rate_gbit_s is None else round(rate_gbit_s, _GBIT_DIGITS)
