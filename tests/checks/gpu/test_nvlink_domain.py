"""NC414 nvlink-domain."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import Fabric
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, node, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import software, some
from tests.gpu_builders import with_all_gpus, with_gpu

SLUG = "nvlink-domain"


def fabric(domain: str) -> Fabric:
    return Fabric("completed", 0, "healthy", False, domain)


def with_domains(*domains: str, channels: tuple[int, ...] = (0,)) -> Snapshot:
    """One node per domain, each with IMEX channels."""
    snapshot = cluster(len(domains))
    for number, domain in enumerate(domains):
        host = f"node0{number + 1}"
        for index in range(8):
            snapshot = with_gpu(snapshot, host, index, fabric=fabric(domain))
        snapshot = with_channels(snapshot, host, channels)
    return snapshot


def with_channels(snapshot: Snapshot, host: str, channels: object) -> Snapshot:
    driver = some(node(snapshot, host).facts.gpu_driver)
    return with_facts(snapshot, host, gpu_driver=replace(driver, imex_channels=channels))


def test_one_domain_and_two_racks_are_silent() -> None:
    assert is_silent(SLUG, with_domains("a.1", "a.1", "a.1"))
    assert is_silent(SLUG, with_domains("a.1", "a.1", "b.1", "b.1"))


def test_machines_without_multi_node_nvlink_have_nothing_to_compare() -> None:
    assert is_silent(SLUG, cluster(2))
    none = Missing("unsupported", "this driver does not tell it")
    assert run(SLUG, with_all_gpus(cluster(2), fabric=none)).outcome == "not_applicable"


def test_a_node_of_another_clique_is_named() -> None:
    found = finding(SLUG, with_domains("a.1", "a.1", "a.2"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "node03 is alone in its NVLink domain" in found.summary


def test_a_gpu_that_fell_out_of_the_domain_is_named() -> None:
    found = finding(SLUG, with_gpu(with_domains("a.1", "a.1"), "node02", 5, fabric=fabric("")))
    assert found.hosts == ("node02",)
    assert found.summary.startswith("GPU 5 ")


def test_without_an_imex_channel_or_a_common_one_nvlink_is_of_no_use_between_nodes() -> None:
    healthy = with_domains("a.1", "a.1", "a.1")
    assert "node02 has no IMEX channel" in finding(SLUG, with_channels(healthy, "node02", ())).summary
    assert "no IMEX channel is the same" in finding(SLUG, with_channels(healthy, "node02", (4,))).summary


@pytest.mark.parametrize(
    ("nccl", "environment", "severity", "said"),
    [
        ("2.30.7", {}, "error", "NCCL fails at its start"),
        ("2.27.3", {"NCCL_MNNVL_ENABLE": "1"}, "error", "NCCL fails at its start"),
        ("2.26.6", {}, "warning", "uses the network"),
        ("2.25.1", {}, "warning", "uses the network"),
        ("2.24.3", {}, "error", "NCCL fails at its start"),
        ("2.30.7", {"NCCL_MNNVL_ENABLE": "0"}, "warning", "is 0, and NCCL uses the network"),
        ("2.30.7", {"NCCL_CUMEM_ENABLE": "0"}, "warning", "is 0, and NCCL uses the network"),
    ],
)
def test_what_nccl_does_without_an_imex_channel(
    nccl: str, environment: dict[str, str], severity: str, said: str
) -> None:
    """NCCL src/mnnvl.cc and src/init.cc of these tags."""
    snapshot = with_channels(with_domains("a.1", "a.1"), "node02", ())
    for place in snapshot.nodes:
        facts = place.facts
        choice = replace(some(facts.nccl), asked=Missing("absent", "not asked"))
        snapshot = with_facts(
            snapshot, place.host, nccl=choice, software=software(nccl=nccl), environment=environment
        )
    found = finding(SLUG, snapshot)
    assert (found.severity, found.hosts) == (severity, ("node02",))
    assert said in found.summary


def test_channels_that_differ_are_an_error_unless_nvlink_between_nodes_is_off() -> None:
    differ = with_channels(with_domains("a.1", "a.1"), "node02", (4,))
    assert finding(SLUG, differ).severity == "error"
    off = everywhere(differ, environment={"NCCL_MNNVL_ENABLE": "0"})
    assert finding(SLUG, off).severity == "warning"


def test_what_was_not_read_is_unknown() -> None:
    healthy = with_domains("a.1", "a.1")
    late = Missing("timeout", "late")
    assert run(SLUG, with_gpu(healthy, "node02", 1, fabric=late)).outcome == "unknown"
    assert run(SLUG, with_channels(healthy, "node02", late)).outcome == "unknown"
