"""NC208 hostname-loopback."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Names
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_environment, with_facts, with_silent, without
from tests.checks.running import finding, is_silent, run


def resolving(addresses: Fact[tuple[str, ...]]) -> Snapshot:
    return with_facts(cluster(4), "node03", names=Names("node03", "node03", addresses))


def test_a_name_with_the_nodes_address_is_silent() -> None:
    assert is_silent("hostname-loopback", cluster(4))


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        (("127.0.1.1",), "resolves to 127.0.1.1"),
        (("::1", "10.0.0.3"), "resolves to ::1"),
        (("192.0.2.7", "127.0.0.1"), "resolves to 127.0.0.1"),
        (("192.0.2.7",), "not an address of this node"),
        (Missing("absent", "node03: Name or service not known"), "does not resolve"),
        (Missing("error", "node03: Temporary failure in name resolution"), "does not resolve"),
    ],
    ids=str,
)
def test_a_name_that_leads_gloo_to_loopback_is_a_warning(
    addresses: Fact[tuple[str, ...]], words: str
) -> None:
    found = finding("hostname-loopback", resolving(addresses))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert words in found.summary


def test_the_first_address_that_can_be_bound_counts() -> None:
    assert is_silent("hostname-loopback", resolving(("192.0.2.7", "10.0.0.3", "127.0.0.1")))


def test_where_gloo_is_told_it_is_worth_knowing_only() -> None:
    told = with_environment(resolving(("127.0.1.1",)), "node03", GLOO_SOCKET_IFNAME="eth0")
    assert finding("hostname-loopback", told).severity == "info"


def test_one_node_is_fine_with_loopback() -> None:
    assert run("hostname-loopback", cluster(1)).outcome == "not_applicable"


def test_no_answer_from_the_resolver_is_unknown() -> None:
    assert run("hostname-loopback", resolving(Missing("timeout", "node03"))).outcome == "unknown"
    assert run("hostname-loopback", without(cluster(4), "node03", "names")).outcome == "unknown"


def test_where_no_node_has_a_gpu_gloo_carries_the_job_and_it_is_an_error() -> None:
    no_gpu = Missing("absent", "no NVIDIA driver is installed")
    found = finding(
        "hostname-loopback", everywhere(resolving(("127.0.1.1",)), gpus=no_gpu, torch_gpus=no_gpu)
    )
    assert found.severity == "error"
    some_have = with_facts(
        everywhere(resolving(("127.0.1.1",)), gpus=no_gpu, torch_gpus=no_gpu),
        "node01",
        gpus=Missing("timeout", "late"),
    )
    assert finding("hostname-loopback", some_have).severity == "warning"
    one_silent = everywhere(with_silent(resolving(("127.0.1.1",)), "node04"), gpus=no_gpu)
    assert finding("hostname-loopback", one_silent).severity == "warning"
    bus_unread = everywhere(resolving(("127.0.1.1",)), gpus=no_gpu, pci=Missing("timeout", "late"))
    assert finding("hostname-loopback", bus_unread).severity == "warning"
