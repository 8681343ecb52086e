"""The hardware as the reference table names it."""

from __future__ import annotations

from typing import Any

from ncclcheck.checks.bench._hardware import hardware_of
from ncclcheck.measure.reference import Hardware
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import with_bench
from tests.builders import without
from tests.checks.bench.nccl_runs import IB, SOCKET, node_log, with_nccl_bench
from tests.fact_builders import some
from tests.gpu_builders import with_all_gpus, with_gpu
from tests.hardware_builders import rdma_cluster

H100 = "NVIDIA H100 80GB HBM3"


def over(nodes: int, kind: dict[str, Any]) -> Snapshot:
    ranks = 8 * nodes
    logs = [
        node_log(f"node0{node + 1}", *range(8 * node, 8 * node + 8), of=ranks, **kind)
        for node in range(nodes)
    ]
    return with_nccl_bench(rdma_cluster(nodes), *logs, ranks=ranks)


def test_nodes_over_infiniband_and_over_sockets() -> None:
    rdma, tcp = over(2, IB), over(2, SOCKET)
    assert hardware_of(rdma, some(rdma.bench)) == Hardware(H100, 8, 2, "rdma", 3200.0)
    assert hardware_of(tcp, some(tcp.bench)) == Hardware(H100, 8, 2, "tcp", 100.0)


def test_one_node_by_its_links() -> None:
    one = over(1, {**IB, "via": "P2P/CUMEM"})
    assert hardware_of(one, some(one.bench)) == Hardware(H100, 8, 1, "nvlink")
    bridged = with_all_gpus(one, nvlinks=())
    assert hardware_of(bridged, some(one.bench)) == Hardware(H100, 8, 1, "pcie")


def test_nvlink_between_nodes_is_seen_in_the_log() -> None:
    across = over(2, {**IB, "via": "P2P/MNNVL"})
    found = hardware_of(across, some(across.bench))
    assert found is not None
    assert found.fabric == "mnnvl"


def test_gloo_mixed_gpus_and_unread_gpus_have_no_row() -> None:
    gloo = with_bench(rdma_cluster(2))
    assert hardware_of(gloo, some(gloo.bench)) is None
    rdma = over(2, IB)
    assert hardware_of(with_gpu(rdma, "node02", 3, name="NVIDIA A100-SXM4-80GB"), some(rdma.bench)) is None
    assert hardware_of(without(rdma, "node02", "gpus"), some(rdma.bench)) is None
