"""node-intermittent of isolate."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import HUNG, SLOW, with_isolation


def test_sound_nodes_pass() -> None:
    assert run("node-intermittent", with_isolation()).outcome == "passed"


def test_the_node_is_named_with_what_was_measured() -> None:
    found = finding("node-intermittent", with_isolation(nodes=(replace(SLOW, verdict="intermittent"),)))
    assert found.hosts == ("node03",)
    assert "node03 is slow in some of its 3 tests and fast in others" in found.summary
    assert found.evidence
    assert found.fixes[0].commands == ("srun --exclude=node03 ...",)


def test_other_verdicts_are_for_other_checks() -> None:
    others = tuple(node for node in (HUNG, SLOW, replace(SLOW, verdict="intermittent")))
    assert len(run("node-intermittent", with_isolation(nodes=others)).findings) == 1


def test_without_tests_of_pairs_the_question_does_not_arise_and_a_failed_run_is_unknown() -> None:
    assert run("node-intermittent", cluster(4)).outcome == "not_applicable"
    lost = replace(cluster(4), isolation=Missing("error", "the store was lost"))
    assert run("node-intermittent", lost).outcome == "unknown"
    assert run("node-intermittent", with_isolation(undecided=("node01",))).outcome == "unknown"
