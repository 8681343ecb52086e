"""Whom to blame for directions that are blocked."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from msgspec.structs import replace

from ncclcheck.checks.network._reach import Blame, blame, directions, not_probed
from ncclcheck.model.snapshot import Coverage, Probe, ProbeOutcome, Snapshot
from tests.builders import cluster, with_outcome
from tests.fact_builders import some
from tests.probe_builders import both_ways, probe

Ways = tuple[tuple[str, str], ...]


def explained(ways: Ways, hosts: str = "abcd") -> list[tuple[str, tuple[str, ...]]]:
    """The explanations for those blocked ways between hosts with one-letter names."""
    found = blamed(ways, hosts)
    told = [probe for one in found for probe in one.directions]
    assert sorted((probe.from_host, probe.to_host) for probe in told) == sorted(ways), "each way is told once"
    return [(one.kind, one.hosts) for one in found]


def blamed(ways: Ways, hosts: str) -> tuple[Blame, ...]:
    probes = []
    for source, target in permutations(hosts, 2):
        outcome: ProbeOutcome = "filtered" if (source, target) in ways else "ok"
        probes.append(Probe("tcp", source, target, "eth0", f"10.0.0.{ord(target)}", 1, outcome))
    return blame([probe for probe in probes if probe.outcome != "ok"], probes)


def test_nothing_is_blocked() -> None:
    assert explained(()) == []


def test_everything_is_blocked() -> None:
    assert explained(tuple(permutations("abcd", 2))) == [("everyone", ("a", "b", "c", "d"))]


def test_of_two_nodes_the_pair_is_named() -> None:
    assert explained((("a", "b"), ("b", "a")), "ab") == [("pair", ("a", "b"))]


def test_one_node_is_cut_off() -> None:
    ways = tuple((one, "c") for one in "abd") + tuple(("c", one) for one in "abd")
    assert explained(ways) == [("cut-off", ("c",))]


def test_nobody_reaches_one_node_or_it_reaches_nobody() -> None:
    assert explained(tuple((one, "c") for one in "abd")) == [("unreachable", ("c",))]
    assert explained(tuple(("c", one) for one in "abd")) == [("mute", ("c",))]


def test_two_nodes_are_cut_off() -> None:
    ways = tuple(way for way in permutations("abcd", 2) if set(way) != {"a", "b"})
    assert explained(ways) == [("cut-off", ("c",)), ("cut-off", ("d",))]


def test_two_islands_are_one_explanation_on_the_smaller() -> None:
    ways = tuple(product("ab", "cde")) + tuple(product("cde", "ab"))
    (one,) = blamed(ways, "abcde")
    assert (one.kind, one.hosts, one.others) == ("islands", ("a", "b"), ("c", "d", "e"))


def test_single_pairs_are_named_one_by_one() -> None:
    assert explained((("a", "b"), ("b", "a"), ("c", "d"))) == [("pair", ("a", "b")), ("pair", ("c", "d"))]


def test_very_many_pairs_are_one_finding() -> None:
    ring = tuple((f"{one}", f"{other}") for one, other in zip("abcdefgh", "bcdefgha", strict=True))
    assert [kind for kind, _ in explained(ring, "abcdefgh")] == ["pairs"]


def test_the_worst_of_several_probes_of_a_pair_counts() -> None:
    healthy = cluster(2)
    second = replace(some(healthy.probes)[0], port=41001, outcome="filtered")
    assert [
        probe.outcome for probe in directions(replace(healthy, probes=(*some(healthy.probes), second)), "tcp")
    ] == [
        "filtered",
        "ok",
    ]


def reasons(snapshot: Snapshot) -> list[str]:
    return [known.reason for known in not_probed(snapshot, "tcp")]


def test_a_sample_is_complete_when_all_of_it_was_probed() -> None:
    healthy = cluster(4)
    ring = {("node01", "node02"), ("node02", "node03"), ("node03", "node04"), ("node04", "node01")}
    probes = tuple(probe for probe in some(healthy.probes) if (probe.from_host, probe.to_host) in ring)
    sampled = replace(healthy, probes=probes, coverage=Coverage(4, 12, "ring"))
    assert reasons(sampled) == []
    assert reasons(replace(sampled, coverage=Coverage(6, 12, "ring"))) == [
        "4 of 6 planned tcp directions were probed"
    ]


def test_probes_that_say_nothing_are_named() -> None:
    unclear = with_outcome(cluster(2), "error", both_ways("node01", "node02"))
    assert reasons(unclear) == [
        "the tcp probe to node02 has no result (error)",
        "the tcp probe to node01 has no result (error)",
    ]


def nccl_probe(outcome: ProbeOutcome) -> Probe:
    """What node01 met at NCCL's own listener on node02, whose address it had reached through ours."""
    return replace(probe("tcp", 0, 1, outcome), listener="nccl", port=41001)


def with_nccl_probe(outcome: ProbeOutcome) -> Snapshot:
    healthy = cluster(3)
    return replace(healthy, probes=(*some(healthy.probes), nccl_probe(outcome)))


@pytest.mark.parametrize("outcome", ["filtered", "refused", "no-route"])
def test_what_nccls_own_listener_meets_counts_though_ours_was_reached(outcome: ProbeOutcome) -> None:
    worst = {
        (direction.from_host, direction.to_host): direction
        for direction in directions(with_nccl_probe(outcome), "tcp")
    }
    assert worst["node01", "node02"] == nccl_probe(outcome)
    assert worst["node02", "node01"].outcome == "ok"


def test_a_listener_of_nccl_that_is_gone_leaves_the_direction_open() -> None:
    snapshot = with_nccl_probe("error")
    assert any("has no result (error" in known.reason for known in not_probed(snapshot, "tcp"))
