"""NC201 ifname-no-match."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from ncclcheck.model.snapshot import RankPlace, Snapshot
from tests.builders import cluster, with_choice, with_environment, with_facts, with_interfaces, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, interface


def named(value: str, host: str = "node03") -> Snapshot:
    """NCCL, asked on one node with that value, found nothing."""
    return with_choice(with_environment(cluster(4), host, NCCL_SOCKET_IFNAME=value), host, None, None)


def test_a_name_that_exists_is_silent() -> None:
    fine = with_environment(cluster(4), "node03", NCCL_SOCKET_IFNAME="=eth0", GLOO_SOCKET_IFNAME="eth0")
    assert is_silent("ifname-no-match", fine)


def test_a_name_that_is_on_no_interface_is_an_error_on_that_node() -> None:
    found = finding("ifname-no-match", named("ens5"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "NCCL_SOCKET_IFNAME='ens5' gives NCCL no interface on node03" in found.summary
    assert "lo, eth0" in found.evidence[0].observed


def test_one_value_on_several_nodes_is_one_finding() -> None:
    broken = with_environment(named("ens5"), "node04", NCCL_SOCKET_IFNAME="ens5")
    assert finding("ifname-no-match", with_choice(broken, "node04", None, None)).hosts == ("node03", "node04")


def test_a_value_in_a_config_file_is_named_with_the_file() -> None:
    choice = NcclChoice(GONE, (NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "ens5"}),), True)
    found = finding("ifname-no-match", with_facts(cluster(4), "node03", nccl=choice))
    assert found.evidence[0].subject == "NCCL_SOCKET_IFNAME (/etc/nccl.conf)"


def test_the_interface_it_names_is_down() -> None:
    broken = with_interfaces(named("eth0"), "node03", interface("eth0", "10.0.0.3/24", running=False))
    assert "(eth0 is not running)" in finding("ifname-no-match", broken).summary


def test_a_node_without_any_interface_is_found_without_the_variable() -> None:
    broken = with_choice(with_facts(cluster(4), "node03", interfaces=()), "node03", None, None)
    assert "NCCL finds no interface to use on node03" in finding("ifname-no-match", broken).summary


@pytest.mark.parametrize("value", ["^lo", "^lo,docker0", "=eth0", "eth", "eth0 ", '"eth0"'])
def test_a_value_that_gloo_cannot_read_is_told_once(value: str) -> None:
    odd = with_environment(cluster(4), "node03", GLOO_SOCKET_IFNAME=value)
    result = run("ifname-no-match", odd)
    assert (result.outcome, result.findings) == ("not_applicable", ())
    assert "gloo-ifname-syntax" in result.reason
    assert finding("gloo-ifname-syntax", odd).hosts == ("node03",)


def test_a_name_beside_a_misspelt_one_is_still_looked_up() -> None:
    odd = with_environment(cluster(4), "node03", GLOO_SOCKET_IFNAME="=eth0,eth9")
    assert "names 'eth9'" in finding("ifname-no-match", odd).summary


@pytest.mark.parametrize("value", ['"eth0"', " eth0", "10.0.0.3", "=^eth0"])
def test_a_value_that_nccl_cannot_read_is_told_once(value: str) -> None:
    result = run("ifname-no-match", named(value))
    assert (result.outcome, result.findings) == ("not_applicable", ())
    assert "env-bad-value" in result.reason
    assert finding("env-bad-value", named(value)).severity == "error"


def test_without_interfaces_nothing_is_known() -> None:
    assert run("ifname-no-match", without(cluster(4), "node03", "interfaces")).outcome == "unknown"


def test_a_library_that_gave_no_answer_leaves_the_model() -> None:
    broken = with_environment(cluster(4), "node03", NCCL_SOCKET_IFNAME="ens5")
    facts = broken.nodes[2].facts
    assert not isinstance(facts.nccl, type(GONE))
    predicted = with_facts(broken, "node03", nccl=replace(facts.nccl, asked=GONE))
    assert finding("ifname-no-match", predicted).hosts == ("node03",)


def test_a_further_rank_with_a_name_of_its_own_is_told() -> None:
    odd = replace(cluster(4), ranks=(RankPlace(9, "node02", 1, 1, 32, {"NCCL_SOCKET_IFNAME": "eth9"}),))
    found = finding("ifname-no-match", odd)
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "on node02, rank 9" in found.summary
    assert found.evidence[0].subject == "NCCL_SOCKET_IFNAME of rank 9 (environment)"
    fine = replace(cluster(4), ranks=(RankPlace(9, "node02", 1, 1, 32, {"NCCL_SOCKET_IFNAME": "=eth0"}),))
    assert is_silent("ifname-no-match", fine)


def test_an_id_of_another_network_is_the_cause_and_not_the_name() -> None:
    odd = with_environment(named("eth0"), "node03", NCCL_COMM_ID="10.9.0.1:5000")
    found = finding("ifname-no-match", odd)
    assert "NCCL_COMM_ID='10.9.0.1:5000' leaves NCCL no interface on node03" in found.summary
    assert found.fixes[0].commands == ("unset NCCL_COMM_ID",)
    unreadable = with_environment(named("eth0"), "node03", NCCL_COMM_ID="[fe80::1")
    assert run("ifname-no-match", unreadable).findings == ()
    assert finding("env-bad-value", unreadable).severity == "error"
