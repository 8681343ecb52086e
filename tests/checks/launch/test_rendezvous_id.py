"""Nodes that torch would keep apart, since their --rdzv-id differs."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, without
from tests.checks.running import finding, is_silent, run

SLUG = "rendezvous-id"


def with_ids(*ids: str) -> Snapshot:
    healthy = cluster(len(ids))
    claims = tuple(
        replace(claim, source="launch-line", rendezvous="c10d", rendezvous_id=number)
        for claim, number in zip(healthy.claims, ids, strict=True)
    )
    return replace(healthy, claims=claims)


def test_the_same_id_everywhere() -> None:
    assert is_silent(SLUG, with_ids("a", "a", "a"))


def test_a_node_with_another_id_is_named_with_both() -> None:
    found = finding(SLUG, with_ids("a", "b"))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "node02 came with --rdzv-id b, node01 with a" in found.summary


def test_ids_that_all_differ_are_all_named() -> None:
    found = finding(SLUG, with_ids("1", "2", "3"))
    assert found.hosts == ("node02", "node03")
    assert "node02 came with --rdzv-id 2, node03 came with --rdzv-id 3, node01 with 1" in found.summary


def test_a_job_without_torchrun_has_no_id() -> None:
    assert run(SLUG, cluster(3)).outcome == "not_applicable"


def test_a_node_that_never_told_its_own_leaves_it_open() -> None:
    two = with_ids("a", "a")
    mute = replace(two, claims=two.claims[:1], claim_hosts=two.claim_hosts[:1])
    assert run(SLUG, without(mute, "node02", "launch")).outcome == "unknown"
