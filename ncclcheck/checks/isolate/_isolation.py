"""What the checks of `isolate` share: nodes, links and groups that the rounds of pairs name."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Literal

from ncclcheck.checks.fixes import compare_paths, leave_out
from ncclcheck.checks.hosts import named
from ncclcheck.checks.measured import measured, why_missing
from ncclcheck.checks.registry import Answer
from ncclcheck.checks.shared_hosts import host_text
from ncclcheck.model.benchmarks.isolation import (
    NO_ANSWER,
    BadGroup,
    BadLink,
    BadNode,
    IsolationRound,
    NodeVerdict,
    PairIsolation,
    PairRate,
)
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.snapshot import Snapshot

_DIRECTION = {
    "send": "sends",
    "receive": "receives",
    "both": "sends and receives",
    None: "sends and receives",
}
_FAILED = {"hang": "hangs", "died": "fails", "unreachable": "cannot be reached"}
_SOURCE = "transfers of pairs, both directions, in rounds"
_IS_IT_REACHED = Fix(
    "look first whether other nodes reach it: if they do, the path from it to node 0 is the cause, not the node"
)
_LISTED, _LISTED_ALONE = 8, 2


def untested(snapshot: Snapshot) -> Iterator[NotKnown | NotApplicable]:
    """Yield why there is nothing to judge, or of which nodes the tests do not tell."""
    isolation = snapshot.isolation
    if isinstance(isolation, Missing):
        yield why_missing(isolation, "pairs of nodes")
        return
    if isolation.unheard is not None:
        yield NotKnown(f"fell silent: {isolation.unheard.words}", isolation.unheard.hosts)
    elif isolation.undecided:
        yield NotKnown("the tests of pairs do not tell", isolation.undecided)
    elif not isolation.rounds:
        yield NotKnown("no pair of nodes was tested")


def nodes_with(snapshot: Snapshot, verdict: NodeVerdict, severity: Severity = "error") -> Iterator[Answer]:
    """Yield a finding for each node with this verdict."""
    isolation = measured(snapshot.isolation)
    for node in isolation.nodes if isolation is not None else ():
        if isolation is not None and node.verdict == verdict:
            yield Finding(
                severity,
                _about(node, isolation, host_text(snapshot, node.host)),
                (node.host,),
                tuple(_evidence(isolation, node.host)),
                (leave_out(node.host),)
                if node.detail != NO_ANSWER
                else (_IS_IT_REACHED, leave_out(node.host)),
            )


def _about(node: BadNode, isolation: PairIsolation, who_is_it: str) -> str:
    tests = plural(node.tests, "test")
    if node.verdict in _FAILED:
        detail = f": {node.detail}" if node.detail else ""
        if not node.tests:
            return f"{who_is_it} never started to measure{detail}"
        return f"{who_is_it} {_FAILED[node.verdict]} in tests with other nodes ({tests}){detail}"
    slower = [part for part in (node.sends, node.receives) if part is not None]
    part = f"{min(slower):.0%}" if slower else "less"
    usual = f"{isolation.reference_gbit_s:.3g} Gbit/s" if isolation.reference_gbit_s else "the usual rate"
    if node.verdict == "intermittent":
        return f"{who_is_it} is slow in some of its {tests} and fast in others"
    rails = f", over GPU {', '.join(map(str, node.rails))} only" if node.rails else ""
    return (
        f"{who_is_it} {_DIRECTION[node.direction]}{rails} with {part} of what other nodes reach ({usual}), "
        f"with several partners ({tests}; chance that it is good: {node.false_name_chance:.2g})"
    )


def _evidence(isolation: PairIsolation, host: str) -> Iterator[Evidence]:
    host_tests = [
        (planned.number, pair)
        for planned in isolation.rounds
        for pair in planned.pairs
        if host in (pair.a, pair.b)
    ]
    usual = f"{isolation.reference_gbit_s:.3g} Gbit/s" if isolation.reference_gbit_s else "a finished test"
    for number, pair in host_tests[:_LISTED]:
        yield Evidence((pair.a, pair.b), f"round {number}", _rates(pair), usual, _SOURCE)


def _rates(pair: PairRate) -> str:
    if pair.a_to_b_gbit_s is None or pair.b_to_a_gbit_s is None:
        return pair.outcome
    return f"{pair.a} to {pair.b} {pair.a_to_b_gbit_s:.3g} Gbit/s, {pair.b} to {pair.a} {pair.b_to_a_gbit_s:.3g} Gbit/s"


def links_of(snapshot: Snapshot) -> Iterator[Answer]:
    """Yield a finding for each path between two sound nodes."""
    isolation = measured(snapshot.isolation)
    for link in isolation.links if isolation is not None else ():
        assert isolation is not None  # noqa: S101 (it has links)
        what = "is blocked" if link.verdict == "blocked" else "is slow"
        pairs = [
            (planned.number, pair)
            for planned in isolation.rounds
            for pair in planned.pairs
            if {pair.a, pair.b} == {link.from_host, link.to_host}
        ]
        usual = (
            f"{isolation.reference_gbit_s:.3g} Gbit/s" if isolation.reference_gbit_s else "a finished test"
        )
        yield Finding(
            "error",
            f"the path from {host_text(snapshot, link.from_host)} to {host_text(snapshot, link.to_host)} {what}; "
            f"{_ends(isolation, link)}",
            (link.from_host, link.to_host),
            tuple(
                Evidence((pair.a, pair.b), f"round {number}", _rates(pair), usual, _SOURCE)
                for number, pair in pairs[:_LISTED]
            ),
            (compare_paths(link.to_host),),
        )


def _ends(isolation: PairIsolation, link: BadLink) -> str:
    """Return what is known of the two ends: nothing, where they are the only nodes that were tested."""
    tested = {host for planned in isolation.rounds for pair in planned.pairs for host in (pair.a, pair.b)}
    if tested == {link.from_host, link.to_host}:
        return "which of the two nodes is the cause takes a third one to tell"
    return "both nodes are good with others"


def rings_of(snapshot: Snapshot) -> Iterator[Answer]:
    """Yield a finding if more nodes at once are slower than few, or why that was not asked."""
    isolation = measured(snapshot.isolation)
    if isolation is None:
        return
    if not isolation.rings:
        yield NotApplicable("no rings of several nodes were measured")
    size = isolation.only_from_nodes
    if size is None:
        return
    hosts = tuple(sorted({host for ring in isolation.rings for host in ring.hosts}))
    at_size = [ring for ring in isolation.rings if len(ring.hosts) == size]
    smaller = [ring.rate_gbit_s for ring in isolation.rings if len(ring.hosts) < size and ring.rate_gbit_s]
    usual = f"{median(smaller):.3g} Gbit/s in smaller rings" if smaller else "a finished ring"
    yield Finding(
        "warning",
        f"from {size} nodes at once on the network is slow, though no pair of nodes is: what they share is the cause, "
        "no node",
        hosts,
        tuple(
            Evidence(
                ring.hosts,
                f"ring of {size} nodes (round {ring.number})",
                ring.outcome
                if ring.rate_gbit_s is None
                else f"{ring.rate_gbit_s:.3g} Gbit/s, the slowest node",
                usual,
                "rings in which all nodes send and receive at once",
            )
            for ring in at_size
        ),
        (Fix("place the job on fewer switches, or look at the uplinks and how traffic is spread over them"),),
    )


def groups_of(snapshot: Snapshot, verdict: Literal["slow_uplink", "slow_together"]) -> Iterator[Answer]:
    """Yield a finding for each group with this verdict."""
    isolation = measured(snapshot.isolation)
    for group in isolation.groups if isolation is not None else ():
        if isolation is not None and group.verdict == verdict:
            when = "" if verdict == "slow_uplink" else ", but only if several of them send at once"
            yield Finding(
                "error" if verdict == "slow_uplink" else "warning",
                f"{named(group.hosts)} are fast among each other and slow toward all others{when}"
                f"{_speed_text(isolation, group)}: the path that they share is the cause, no node of them",
                group.hosts,
                tuple(_crossing_evidence(isolation, group)),
                (Fix("look at the uplink or switch that these nodes share"),),
            )


def _crossing(isolation: PairIsolation, group: BadGroup) -> list[tuple[IsolationRound, PairRate]]:
    """Return the tests between a node of the group and another one."""
    inside = frozenset(group.hosts)
    return [
        (planned, pair)
        for planned in isolation.rounds
        for pair in planned.pairs
        if (pair.a in inside) != (pair.b in inside)
    ]


def _speed_text(isolation: PairIsolation, group: BadGroup) -> str:
    """Return what the group sends and receives while several pairs cross its path, in the median."""
    sent, received = list[float](), list[float]()
    for planned, pair in _crossing(isolation, group):
        if len(planned.pairs) > 1 and pair.a_to_b_gbit_s is not None and pair.b_to_a_gbit_s is not None:
            is_first = pair.a in group.hosts
            sent.append(pair.a_to_b_gbit_s if is_first else pair.b_to_a_gbit_s)
            received.append(pair.b_to_a_gbit_s if is_first else pair.a_to_b_gbit_s)
    usual = isolation.reference_gbit_s
    if not sent or not usual:
        return ""
    return f" (they send {median(sent) / usual:.0%} and receive {median(received) / usual:.0%} of the usual rate)"


def _crossing_evidence(isolation: PairIsolation, group: BadGroup) -> Iterator[Evidence]:
    """Yield the slow tests across the path, and those of a pair that had it to itself."""
    crossing = _crossing(isolation, group)
    slow = [entry for entry in crossing if len(entry[0].pairs) > 1 and entry[1].outcome != "ok"]
    alone = [entry for entry in crossing if len(entry[0].pairs) == 1]
    usual = f"{isolation.reference_gbit_s:.3g} Gbit/s" if isolation.reference_gbit_s else "a finished test"
    for planned, pair in (*slow[: _LISTED - _LISTED_ALONE], *alone[:_LISTED_ALONE]):
        pairs = len(planned.pairs)
        how = "no other pair at the same time" if pairs == 1 else f"{pairs} pairs at once"
        yield Evidence((pair.a, pair.b), f"round {planned.number}, {how}", _rates(pair), usual, _SOURCE)
