"""NC201 ifname-no-match."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from ncclcheck.model.snapshot import Snapshot
from tests.builders import (
    GONE,
    cluster,
    interface,
    with_choice,
    with_environment,
    with_facts,
    with_interfaces,
    without,
)
from tests.checks.running import finding, is_silent, run


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


def test_gloo_knows_neither_prefixes_nor_exclusions() -> None:
    found = finding("ifname-no-match", with_environment(cluster(4), "node03", GLOO_SOCKET_IFNAME="^lo"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "Gloo takes exact names only" in found.summary


def test_without_interfaces_nothing_is_known() -> None:
    assert run("ifname-no-match", without(cluster(4), "node03", "interfaces")).outcome == "unknown"


def test_a_library_that_gave_no_answer_leaves_the_model() -> None:
    broken = with_environment(cluster(4), "node03", NCCL_SOCKET_IFNAME="ens5")
    facts = broken.nodes[2].facts
    assert not isinstance(facts.nccl, type(GONE))
    predicted = with_facts(broken, "node03", nccl=replace(facts.nccl, asked=GONE))
    assert finding("ifname-no-match", predicted).hosts == ("node03",)
