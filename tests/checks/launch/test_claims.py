"""What every process claimed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.launch._claims import claims, duplicated_node_ranks, not_claimed
from tests.builders import cluster, without


def test_recorded_claims_come_first_and_facts_fill_what_is_not_recorded() -> None:
    healthy = cluster(3)
    partly = replace(healthy, claims=healthy.claims[1:], claim_hosts=healthy.claim_hosts[1:])
    assert [claim.host for claim in claims(partly)] == ["node02", "node03", "node01"]
    assert list(not_claimed(partly)) == []


def test_a_node_without_any_is_named() -> None:
    bare = replace(without(cluster(2), "node02", "launch"), claims=(), claim_hosts=())
    assert [known.hosts for known in not_claimed(bare)] == [("node02",)]


def test_each_duplicated_node_rank_is_given_once() -> None:
    seen = claims(cluster(2))
    assert duplicated_node_ranks(seen) == {}
    assert duplicated_node_ranks((*seen, seen[1])) == {1: ("node02", "node02")}
