"""NC121 loopback-down."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from tests.builders import cluster, with_facts, with_master, without
from tests.checks.running import finding, is_silent, run

NONE = Missing("absent", "lo has none")


def lo(operstate: str, *flags: str) -> Interface:
    return Interface("lo", "loopback", 772, 65536, operstate, flags, (), NONE, NONE, NONE)


def test_a_loopback_interface_that_is_up_is_silent() -> None:
    assert is_silent("loopback-down", cluster(4))
    up = lo("unknown", "up", "loopback", "running")
    assert is_silent("loopback-down", with_facts(cluster(4), "node03", interfaces=(up,)))


def test_one_that_is_down_is_named_with_its_node() -> None:
    down = lo("down", "loopback")
    found = finding("loopback-down", with_facts(cluster(4), "node03", interfaces=(down,)))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.fixes[0].commands == ("sudo ip link set lo up",)


def test_flags_that_were_not_read_say_nothing() -> None:
    unknown = lo("unknown")
    assert is_silent("loopback-down", with_facts(cluster(4), "node03", interfaces=(unknown,)))


def test_node_0_that_cannot_serve_for_that_reason_says_so() -> None:
    found = finding("loopback-down", with_master(cluster(4), "node01", "loopback-down"))
    assert found.hosts == ("node01",)


def test_without_the_fact_nothing_is_known() -> None:
    assert run("loopback-down", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
