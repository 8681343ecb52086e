"""slow-in-company of isolate."""

from __future__ import annotations

from ncclcheck.model.benchmarks.isolation import BadGroup, IsolationRound, PairRate
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import with_isolation

GROUP = ("node01", "node02", "node03")


def test_without_a_group_it_passes() -> None:
    assert run("slow-in-company", with_isolation()).outcome == "passed"


def test_the_group_is_named_and_its_path_is_blamed() -> None:
    found = finding("slow-in-company", with_isolation(groups=(BadGroup(GROUP, "slow_together"),)))
    assert (found.severity, found.hosts) == ("warning", GROUP)
    assert "the path that they share is the cause, no node of them" in found.summary


def test_the_tests_across_the_path_are_the_evidence_with_their_directions() -> None:
    together = IsolationRound(
        1, (PairRate("node01", "node04", 5.0, 9.8, "slow"), PairRate("node02", "node03", 10.0, 10.0, "ok"))
    )
    alone = IsolationRound(2, (PairRate("node04", "node02", 10.0, 10.0, "ok"),))
    group = BadGroup(GROUP, "slow_together")
    found = finding("slow-in-company", with_isolation(groups=(group,), rounds=(together, alone)))
    assert "(they send 50% and receive 98% of the usual rate)" in found.summary
    assert [(seen.hosts, seen.subject) for seen in found.evidence] == [
        (("node01", "node04"), "round 1, 2 pairs at once"),
        (("node04", "node02"), "round 2, no other pair at the same time"),
    ]
    assert found.evidence[0].observed == "node01 to node04 5 Gbit/s, node04 to node01 9.8 Gbit/s"


def test_without_tests_of_pairs_the_question_does_not_arise() -> None:
    assert run("slow-in-company", cluster(4)).outcome == "not_applicable"
