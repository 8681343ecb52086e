"""What the checks of isolate share: why there is nothing to judge, and the evidence of a node."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.isolate._isolation import nodes_with, untested
from ncclcheck.checks.measured import measured
from ncclcheck.model.benchmarks.isolation import BadNode
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, NotApplicable, NotKnown
from tests.builders import cluster
from tests.isolation_builders import SLOW, isolated, with_isolation


def test_without_a_result_there_is_none() -> None:
    assert measured(cluster(4).isolation) is None
    assert measured(with_isolation().isolation) == isolated()


def test_why_nothing_can_be_judged() -> None:
    assert [type(answer) for answer in untested(cluster(4))] == [NotApplicable]
    lost = replace(cluster(4), isolation=Missing("error", "lost"))
    assert [type(answer) for answer in untested(lost)] == [NotKnown]
    assert [type(answer) for answer in untested(with_isolation(rounds=()))] == [NotKnown]
    assert list(untested(with_isolation())) == []


def test_the_evidence_of_a_node_are_its_own_pairs() -> None:
    (found,) = nodes_with(with_isolation(nodes=(SLOW,)), "slow")
    assert isinstance(found, Finding)
    assert [part.hosts for part in found.evidence] == [("node03", "node04")]
    assert found.evidence[0].observed == "node03 to node04 8 Gbit/s, node04 to node03 10 Gbit/s"


def test_a_node_that_never_measured_is_told_from_one_that_hangs_in_a_test() -> None:
    detail = "torch was not imported within 120 s"
    node = BadNode("node02", "died", None, 0, 0.0, detail=detail)
    (found,) = nodes_with(with_isolation(nodes=(node,)), "died")
    assert isinstance(found, Finding)
    assert found.summary == f"node02 never started to measure: {detail}"
