"""NC117 authenticated."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.authentication import Authentication, Foreign
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, seen_alone, with_master, with_silent
from tests.checks.running import finding, is_silent, run


def keyed(snapshot: Snapshot, *foreign: Foreign) -> Snapshot:
    return replace(snapshot, authentication=Authentication("--key-file", foreign))


def test_a_run_with_a_key_passes() -> None:
    assert run("authenticated", keyed(cluster(3))).outcome == "passed"


def test_a_run_without_a_key_has_not_run_the_check() -> None:
    result = run("authenticated", cluster(3))
    assert (result.outcome, "no key" in result.reason) == ("not_applicable", True)


def test_strangers_alone_are_no_finding() -> None:
    assert is_silent("authenticated", keyed(cluster(3), Foreign("10.0.0.9", "other-key", 5, "node02", 1)))


def test_a_silent_node_whose_place_somebody_without_the_key_claims_is_named_with_the_source() -> None:
    silent = with_silent(cluster(3), "node02")
    rank = silent.silent[0].node_rank
    strangers = Foreign("10.0.0.2", "other-key", 5, "node02", rank), Foreign("10.0.0.9", "no-key", 3)
    found = finding("authenticated", keyed(silent, *strangers))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "node02 at 10.0.0.2" in found.summary
    assert ["which nothing proves" in evidence.subject for evidence in found.evidence] == [True]


def test_several_silent_nodes_are_told_as_several_by_node_rank_each_with_its_source() -> None:
    silent = with_silent(with_silent(cluster(3), "node02"), "node03")
    ranks = {node.host: node.node_rank for node in silent.silent}
    strangers = [
        Foreign(f"10.0.0.{host[-1]}", "other-key", 5, host, ranks[host]) for host in ("node03", "node02")
    ]
    found = finding("authenticated", keyed(silent, *strangers))
    assert found.hosts == ("node02", "node03")
    assert (
        "processes that say they are these nodes have other keys, or none: node02 at 10.0.0.2, node03"
        in found.summary
    )


def test_a_node_with_another_key_says_so_itself() -> None:
    denied = with_master(
        cluster(3), "node02", "other-key", detail="node 0 asks for a key, and this node has none"
    )
    found = finding("authenticated", seen_alone(denied, "node02"))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "node 0 asks for a key" in found.summary


def test_one_node_needs_no_key() -> None:
    assert run("authenticated", cluster(1)).outcome == "not_applicable"
