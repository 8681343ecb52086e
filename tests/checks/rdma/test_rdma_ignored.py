"""NC305 rdma-ignored."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import NetPlugin, Pci, Rdma
from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere, node, with_environment, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some
from tests.hardware_builders import healthy_rdma, rdma_cluster, with_rdma
from tests.nccl.hardware import NO_LIBRARY, port

SLUG = "rdma-ignored"


def set_everywhere(snapshot: Snapshot, **variables: str) -> Snapshot:
    for one in snapshot.nodes:
        snapshot = with_environment(snapshot, one.host, **variables)
    return snapshot


def efa_cluster() -> Snapshot:
    efa = [port(f"rdmap_{number}", link_layer="Unknown", driver="efa") for number in range(4)]
    return everywhere(rdma_cluster(2), rdma=healthy_rdma(*efa))


def with_plugin(snapshot: Snapshot, host: str, plugin: NetPlugin) -> Snapshot:
    choice = some(node(snapshot, host).facts.nccl)
    return with_facts(snapshot, host, nccl=replace(choice, plugins=(plugin,)))


def test_a_container_without_libibverbs_is_an_error_with_the_reason() -> None:
    found = finding(SLUG, with_rdma(rdma_cluster(1), "node01", verbs_library=NO_LIBRARY))
    assert (found.severity, found.hosts) == ("error", ("node01",))
    assert "libibverbs" in found.summary
    assert "mlx5_0:1" in found.summary
    assert any("libibverbs" in command for command in found.fixes[0].commands)


def test_without_gpus_and_on_all_nodes_it_is_a_warning() -> None:
    snapshot = with_facts(
        with_rdma(rdma_cluster(1), "node01", verbs_library=NO_LIBRARY), "node01", gpus=(), pci=Pci(())
    )
    assert finding(SLUG, snapshot).severity == "warning"


def test_one_node_on_sockets_among_others_on_rdma_is_an_error() -> None:
    found = finding(SLUG, with_environment(rdma_cluster(3), "node02", NCCL_IB_DISABLE="1"))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "where node01 and node03 use another network" in found.summary


def test_switched_off_everywhere_is_a_warning_and_the_variable_named() -> None:
    for name, value in (("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")):
        found = finding(SLUG, set_everywhere(rdma_cluster(2), **{name: value}))
        assert (found.severity, found.hosts) == ("warning", ("node01", "node02"))
        assert name in found.fixes[0].commands[0]


def test_a_list_that_matches_no_device_is_an_error() -> None:
    found = finding(SLUG, set_everywhere(rdma_cluster(2), NCCL_IB_HCA="=mlx4_0"))
    assert found.severity == "error"
    assert "NCCL_IB_HCA=" in found.summary
    assert "correct NCCL_IB_HCA" in found.fixes[0].text


def test_a_list_that_keeps_one_is_the_users_choice() -> None:
    assert is_silent(SLUG, set_everywhere(rdma_cluster(2), NCCL_IB_HCA="=mlx5_0"))


def test_what_another_check_tells_is_only_mentioned() -> None:
    found = finding(SLUG, everywhere(rdma_cluster(2), rdma=replace(healthy_rdma(), device_files=())))
    assert (found.severity, "rdma-no-device-files" in found.summary) == ("info", True)
    down = healthy_rdma(port("mlx5_0", state="DOWN"))
    assert finding(SLUG, everywhere(rdma_cluster(2), rdma=down)).severity == "info"


def test_efa_without_its_plugin_is_found_and_with_it_silent() -> None:
    found = finding(SLUG, efa_cluster())
    assert "aws-ofi-nccl" in found.summary
    ofi = NetPlugin("libnccl-net.so", "/opt/amazon/libnccl-net.so", (8, 9, 10), "AWS Libfabric")
    snapshot = efa_cluster()
    for one in snapshot.nodes:
        snapshot = with_plugin(snapshot, one.host, ofi)
    assert is_silent(SLUG, snapshot)


def test_efa_where_nobody_looked_for_plugins_is_unknown() -> None:
    snapshot = efa_cluster()
    for one in snapshot.nodes:
        choice = some(node(snapshot, one.host).facts.nccl)
        untold = replace(choice, plugins=Missing("absent", "not known of a recorded tree"))
        snapshot = with_facts(snapshot, one.host, nccl=untold)
    result = run(SLUG, snapshot)
    assert result.outcome == "unknown"
    assert "EFA" in result.reason


def test_what_is_not_known_is_unknown() -> None:
    assert run(SLUG, without(rdma_cluster(2), "node01", "environment")).outcome == "unknown"
    unread = with_rdma(rdma_cluster(1), "node01", ports=(port("mlx5_0", state=GONE),))
    assert run(SLUG, unread).outcome == "unknown"
    assert run(SLUG, everywhere(rdma_cluster(2), rdma=Rdma((), (), ()))).outcome == "not_applicable"
