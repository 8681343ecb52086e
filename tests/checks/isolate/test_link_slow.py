"""link-slow of isolate."""

from __future__ import annotations

from ncclcheck.model.benchmarks.isolation import BadLink
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import with_isolation


def test_sound_paths_pass() -> None:
    assert run("link-slow", with_isolation()).outcome == "passed"


def test_the_path_is_named_with_both_ends_and_its_direction() -> None:
    found = finding("link-slow", with_isolation(links=(BadLink("node03", "node04", "slow"),)))
    assert found.hosts == ("node03", "node04")
    assert "the path from node03 to node04 is slow; both nodes are good with others" in found.summary
    assert "8 Gbit/s" in found.evidence[0].observed


def test_without_tests_of_pairs_the_question_does_not_arise() -> None:
    assert run("link-slow", cluster(4)).outcome == "not_applicable"


def test_a_name_that_would_be_a_command_is_in_none() -> None:
    links = (BadLink("node03", "node04", "slow"), BadLink("node03", "$(reboot)", "slow"))
    found = run("link-slow", with_isolation(links=links)).findings
    assert [entry.fixes[0].commands for entry in found] == [("tracepath node04",), ()]
