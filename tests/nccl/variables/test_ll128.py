"""Where LL128 is tried, and where it could corrupt data."""

from __future__ import annotations

import pytest

from ncclcheck.advice.bench_network import BenchWish, bench_network
from ncclcheck.model.bench_setup import BenchRequest
from ncclcheck.model.benchmarks.trials import TryRequest
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import NvLink
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.variables.ll128 import ll128_refusal
from tests.builders import cluster, with_environment, without
from tests.fact_builders import some
from tests.gpu_builders import with_all_gpus, with_gpu
from tests.hardware_builders import rdma_cluster

LL128 = BenchRequest(tries=TryRequest(({"NCCL_PROTO": "LL128"},)))


def refusal(snapshot: Snapshot) -> str:
    return ll128_refusal([(node.host, node.facts) for node in snapshot.nodes])


def test_a_node_of_gpus_with_nvlink_may_run_it() -> None:
    assert refusal(cluster(1)) == ""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"compute_capability": "6.0"}, "older than Volta"),
        ({"compute_capability": Missing("unsupported", "")}, "is not known"),
        ({"nvlinks": ()}, "connected by NVLink"),
        ({"nvlinks": Missing("denied", "")}, "connected by NVLink"),
    ],
)
def test_a_platform_that_does_not_support_it_or_is_not_known_does_not(
    changes: dict[str, object], why: str
) -> None:
    told = refusal(with_all_gpus(cluster(1), **changes))
    assert why in told
    assert "can corrupt data" in told


def test_gpus_that_are_bridged_in_pairs_do_not_run_it() -> None:
    snapshot = cluster(1)
    gpus = some(snapshot.nodes[0].facts.gpus)
    for gpu in gpus:
        remote = gpus[gpu.index ^ 1].pci
        snapshot = with_gpu(snapshot, "node01", gpu.index, nvlinks=(NvLink(0, True, remote),))
    assert "NVLinks do not join all GPUs of node01" in refusal(snapshot)


def test_gpus_of_several_kinds_run_it_from_hopper_on() -> None:
    assert refusal(with_gpu(cluster(1), "node01", 3, compute_capability="10.0")) == ""
    assert "several kinds" in refusal(with_gpu(cluster(1), "node01", 3, compute_capability="8.0"))


def test_without_facts_of_the_gpus_or_of_their_way_to_the_network_it_is_not_tried() -> None:
    assert "are not known" in refusal(without(cluster(1), "node01", "gpus"))
    assert "way from the GPUs" in refusal(without(cluster(2), "node02", "pci"))


def test_where_a_topology_file_decides_how_far_the_network_is_it_is_not_tried() -> None:
    snapshot = rdma_cluster(2)
    assert refusal(snapshot) == ""
    snapshot = with_environment(snapshot, "node02", NCCL_TOPO_FILE="/opt/microsoft/ndv5-topo.xml")
    assert "how far the GPUs of node02 are from the network is not known" in refusal(snapshot)


def test_the_benchmark_does_not_start_with_it_there() -> None:
    found = bench_network(BenchWish(LL128), with_all_gpus(cluster(2), compute_capability="6.0"))
    assert isinstance(found, Missing)
    assert "NCCL_PROTO=LL128 is not tried" in found.detail
    assert not isinstance(bench_network(BenchWish(BenchRequest()), cluster(2)), Missing)


def test_nor_does_it_start_with_what_enables_it_without_its_name() -> None:
    wish = BenchWish(BenchRequest(tries=TryRequest(({"NCCL_PROTO": "^LL"},))))
    found = bench_network(wish, with_all_gpus(cluster(2), compute_capability="6.0"))
    assert isinstance(found, Missing)
    assert "NCCL_PROTO=^LL is not tried, for ^ enables each protocol that it does not name" in found.detail
