"""node-hangs of isolate."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.isolation import Unheard
from ncclcheck.model.fact import Missing
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import HUNG, SLOW, with_isolation


def test_sound_nodes_pass() -> None:
    assert run("node-hangs", with_isolation()).outcome == "passed"


def test_the_node_is_named_with_what_was_measured() -> None:
    found = finding("node-hangs", with_isolation(nodes=(HUNG,)))
    assert found.hosts == ("node02",)
    assert (
        "node02 hangs in tests with other nodes (1 test): node 0 does not hear it any more" in found.summary
    )
    assert found.evidence
    assert "the path from it to node 0 is the cause" in found.fixes[0].text
    assert found.fixes[1].commands == ("srun --exclude=node02 ...",)


def test_other_verdicts_are_for_other_checks() -> None:
    others = tuple(node for node in (HUNG, SLOW, replace(SLOW, verdict="intermittent")))
    assert len(run("node-hangs", with_isolation(nodes=others)).findings) == 1


def test_without_tests_of_pairs_the_question_does_not_arise_and_a_failed_run_is_unknown() -> None:
    assert run("node-hangs", cluster(4)).outcome == "not_applicable"
    lost = replace(cluster(4), isolation=Missing("error", "the store was lost"))
    assert run("node-hangs", lost).outcome == "unknown"
    assert run("node-hangs", with_isolation(undecided=("node01",))).outcome == "unknown"


def test_nodes_whose_silence_says_nothing_of_them_are_unknown_and_the_reason_says_why() -> None:
    unheard = Unheard(("node02", "node03"), "stood_still", 15.0)
    judged = run("node-hangs", with_isolation(undecided=unheard.hosts, unheard=unheard))
    assert judged.outcome == "unknown"
    assert "node 0 itself stood still for 15 s" in judged.reason
