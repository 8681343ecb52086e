"""node-slow of isolate."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import HUNG, SLOW, with_isolation


def test_sound_nodes_pass() -> None:
    assert run("node-slow", with_isolation()).outcome == "passed"


def test_the_node_is_named_with_what_was_measured() -> None:
    found = finding("node-slow", with_isolation(nodes=(SLOW,)))
    assert found.hosts == ("node03",)
    assert "sends with 80% of what other nodes reach" in found.summary
    assert found.evidence
    assert found.fixes[0].commands == ("srun --exclude=node03 ...",)


def test_other_verdicts_are_for_other_checks() -> None:
    others = tuple(node for node in (HUNG, SLOW, replace(SLOW, verdict="intermittent")))
    assert len(run("node-slow", with_isolation(nodes=others)).findings) == 1


def test_without_tests_of_pairs_the_question_does_not_arise_and_a_failed_run_is_unknown() -> None:
    assert run("node-slow", cluster(4)).outcome == "not_applicable"
    lost = replace(cluster(4), isolation=Missing("error", "the store was lost"))
    assert run("node-slow", lost).outcome == "unknown"
    assert run("node-slow", with_isolation(undecided=("node01",))).outcome == "unknown"


def test_a_name_that_would_be_a_command_is_in_none() -> None:
    found = finding("node-slow", with_isolation(nodes=(replace(SLOW, host="$(reboot)"),)))
    assert found.fixes[0].commands == ()
