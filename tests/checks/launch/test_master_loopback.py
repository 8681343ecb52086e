"""NC105 master-loopback."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-loopback", cluster(4))


def test_a_loopback_master_is_an_error_on_another_node() -> None:
    broken = with_master(cluster(4), "node03", "loopback", name="head", addresses=("127.0.1.1",))
    found = finding("master-loopback", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "'head' resolves to 127.0.1.1" in found.summary


def test_the_own_name_of_node_0_on_loopback_is_a_warning() -> None:
    broken = with_master(cluster(4), "node01", "serving", name="node01", addresses=("127.0.1.1",))
    found = finding("master-loopback", broken)
    assert (found.severity, found.hosts) == ("warning", ("node01",))


def test_a_loopback_address_itself_is_an_error_on_node_0_too() -> None:
    broken = with_master(cluster(4), "node01", "loopback", name="127.0.0.1", addresses=("127.0.0.1",))
    found = finding("master-loopback", broken)
    assert (found.severity, found.hosts) == ("error", ("node01",))


def test_the_cause_is_told_once_where_all_have_it() -> None:
    broken = cluster(4)
    for node in broken.nodes:
        broken = with_master(broken, node.host, "loopback", name="head", addresses=("127.0.0.1",))
    assert finding("master-loopback", broken).hosts == ("node02", "node03", "node04")


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-loopback", with_silent(cluster(4), "node03", "loopback"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "loopback"), "node03")
    assert finding("master-loopback", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-loopback", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-loopback", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-loopback", cluster(1)).outcome == "not_applicable"


def test_several_ranks_of_one_node_meet_over_loopback() -> None:
    one = with_master(cluster(1), "node01", "serving", name="127.0.0.1", addresses=("127.0.0.1",))
    assert run("master-loopback", one).outcome == "not_applicable"


def test_the_address_to_listen_on_leads_every_client_to_itself() -> None:
    broken = with_master(cluster(4), "node01", "loopback", name="0.0.0.0", addresses=("0.0.0.0",))  # noqa: S104
    broken = with_master(broken, "node03", "loopback", name="0.0.0.0", addresses=("0.0.0.0",))  # noqa: S104
    found = finding("master-loopback", broken)
    assert (found.severity, found.hosts) == ("error", ("node01", "node03"))
    assert "'0.0.0.0' is an address to listen on" in found.summary
