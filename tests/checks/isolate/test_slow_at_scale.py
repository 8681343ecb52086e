"""slow-at-scale of isolate."""

from __future__ import annotations

from ncclcheck.model.benchmarks.isolation import RingRate
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import with_isolation

HOSTS = ("node01", "node02", "node03", "node04")
TWO = RingRate(3, HOSTS[:2], 10.0, "ok")


def test_rings_as_fast_as_pairs_pass() -> None:
    rings = (TWO, RingRate(4, HOSTS, 9.9, "ok"))
    assert run("slow-at-scale", with_isolation(rings=rings)).outcome == "passed"


def test_the_size_is_named_and_no_node_is_blamed() -> None:
    rings = (TWO, RingRate(4, HOSTS, 6.0, "ok"), RingRate(5, HOSTS, None, "hang"))
    found = finding("slow-at-scale", with_isolation(rings=rings, only_from_nodes=4))
    assert found.severity == "warning"
    assert "from 4 nodes at once on the network is slow" in found.summary
    assert [part.observed for part in found.evidence] == ["6 Gbit/s, the slowest node", "hang"]
    assert {part.expected for part in found.evidence} == {"10 Gbit/s in smaller rings"}


def test_without_rings_the_question_does_not_arise() -> None:
    assert run("slow-at-scale", with_isolation()).outcome == "not_applicable"
    assert run("slow-at-scale", cluster(4)).outcome == "not_applicable"
