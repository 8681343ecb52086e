"""What a benchmark runs on, decided from the snapshot alone."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.run.bench_network import Network, bench_network, transport_text
from ncclcheck.run.options import BenchRequest, RunOptions
from tests.advice.clusters import two_networks, with_probes
from tests.builders import cluster

GLOO = RunOptions(command="bench", bench=BenchRequest(backend="gloo"))


def network(options: RunOptions, snapshot: Snapshot) -> Network:
    found = bench_network(options, snapshot)
    assert not isinstance(found, Missing), found
    return found


def without_gpus(snapshot: Snapshot) -> Snapshot:
    none = Missing("absent", "no NVIDIA driver")
    nodes = [Node(one.host, one.node_rank, replace(one.facts, gpus=none)) for one in snapshot.nodes]
    return replace(snapshot, nodes=tuple(nodes))


def test_gpus_everywhere_mean_nccl_with_a_rank_per_gpu_and_nothing_changed() -> None:
    found = network(RunOptions(command="bench"), cluster(2))
    assert found.backend == "nccl"
    assert set(found.ranks_of.values()) == {8}
    assert found.environment_of == {}


def test_without_gpus_gloo_is_bound_to_what_nccl_chooses_and_says_so() -> None:
    found = network(
        RunOptions(command="bench", flags=LaunchFlags(nproc_per_node=1)), without_gpus(cluster(2))
    )
    assert found.backend == "gloo"
    assert set(found.ranks_of.values()) == {1}
    assert set(map(str, found.environment_of.values())) == {"{'GLOO_SOCKET_IFNAME': 'eth0'}"}
    assert "GLOO_SOCKET_IFNAME=eth0" in transport_text(found)


def test_nccl_that_was_asked_for_and_cannot_run_is_said_not_replaced() -> None:
    options = RunOptions(command="bench", bench=BenchRequest(backend="nccl"))
    found = bench_network(options, without_gpus(cluster(2)))
    assert isinstance(found, Missing)
    assert "no GPU on node01, node02" in found.detail


def test_where_not_all_reach_each_other_nothing_is_measured() -> None:
    healthy = cluster(2)
    assert not isinstance(healthy.probes, Missing)
    broken = (replace(healthy.probes[0], outcome="filtered"), *healthy.probes[1:])
    found = bench_network(GLOO, replace(healthy, probes=broken))
    assert isinstance(found, Missing)
    assert "all nodes reach each other" in found.detail


def test_without_probes_the_choice_is_used_and_called_unproven() -> None:
    found = network(GLOO, replace(cluster(2), probes=Missing("absent", "--no-preflight")))
    assert "not probed" in found.proof


def test_one_node_uses_two_ranks_on_loopback() -> None:
    found = network(GLOO, cluster(1))
    assert found.environment_of == {"node01": {"GLOO_SOCKET_IFNAME": "lo"}}
    assert "gloo" in transport_text(found)


def test_where_nccls_choice_is_cut_off_the_network_that_the_advice_names_is_measured() -> None:
    found = network(GLOO, with_probes(two_networks(2), "filtered", interface="eth0"))
    assert {interface for interface, _ in found.binding.values()} == {"eth1"}
    assert "advised" in found.proof


def test_a_network_that_swallows_large_messages_is_not_measured() -> None:
    healthy = cluster(2)
    assert not isinstance(healthy.probes, Missing)
    stalled = replace(healthy.probes[0], kind="mtu", outcome="stalled")
    assert isinstance(bench_network(GLOO, replace(healthy, probes=(*healthy.probes, stalled))), Missing)
