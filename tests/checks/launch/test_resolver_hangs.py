"""NC120 resolver-hangs."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Names
from tests.builders import cluster, with_facts, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run

LATE = Missing("timeout", "lookup: no answer within 5.0 s")


def test_names_that_are_looked_up_are_silent() -> None:
    assert is_silent("resolver-hangs", cluster(4))


def test_a_file_that_hangs_is_named_with_its_node() -> None:
    names = Names("node03", LATE, LATE, ("/etc/hosts",))
    found = finding("resolver-hangs", with_facts(cluster(4), "node03", names=names))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "/etc/hosts hangs when read" in found.summary
    assert "stat /etc/hosts" in found.fixes[0].commands[0]


def test_a_name_server_that_does_not_answer_is_another_matter() -> None:
    assert is_silent("resolver-hangs", with_facts(cluster(4), "node03", names=Names("node03", LATE, LATE)))


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("resolver-hangs", with_silent(cluster(4), "node03", "resolver-hangs"))
    assert found.hosts == ("node03",)
    joined = with_master(cluster(4), "node02", "resolver-hangs", detail="reading /etc/hosts hangs")
    assert finding("resolver-hangs", joined).evidence[0].observed == "reading /etc/hosts hangs"


def test_without_the_fact_nothing_is_known() -> None:
    assert run("resolver-hangs", without(cluster(4), "node03", "names")).outcome == "unknown"
