"""Which links join the GPUs of a node, and how fast these are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.bench._gpu_links import compute_capability, gpu_of, inside_term, switches_may_sum
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.gpu import NvLink
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_result
from tests.builders import cluster, everywhere, node, without
from tests.checks.bench.nccl_runs import IB, node_log, with_nccl_bench
from tests.fact_builders import host_of, some
from tests.gpu_builders import links, with_all_gpus, with_gpu
from tests.hardware_builders import gpu_of as address_of
from tests.hardware_builders import rdma_cluster

SWITCH = "0000:c2:00.0"


def measured(snapshot: Snapshot, ranks: int = 1) -> tuple[Snapshot, BenchResult]:
    """A benchmark of NCCL with so many ranks on each node."""
    count = ranks * len(snapshot.nodes)
    logs = [
        node_log(host_of(place), *range(place * ranks, (place + 1) * ranks), of=count, **IB)
        for place in range(len(snapshot.nodes))
    ]
    snapshot = with_nccl_bench(snapshot, *logs, ranks=count)
    return snapshot, some(snapshot.bench)


def on_gpus(bench: BenchResult, *rails: int) -> BenchResult:
    """The benchmark whose ranks told that they used the GPUs of those rails."""
    (log,) = bench.logs
    told = tuple(
        replace(process, bus_id=address_of(rail)[5:].replace(":", "").replace(".", ""))
        for process, rail in zip(some(log.processes), rails, strict=True)
    )
    return replace(bench, logs=(replace(log, processes=told),))


def bridged(capability: str = "8.0") -> Snapshot:
    """Eight GPUs, bridged in pairs by twelve links each."""
    snapshot = with_all_gpus(rdma_cluster(1), compute_capability=capability)
    for index in range(8):
        ends = tuple(NvLink(link, True, address_of(index ^ 1)) for link in range(12))
        snapshot = with_gpu(snapshot, "node01", index, nvlinks=ends)
    return snapshot


def test_inside_a_node_the_fewest_active_nvlinks_count() -> None:
    snapshot, bench = measured(rdma_cluster(2))
    inside = inside_term(snapshot, bench)
    assert inside is not None
    assert inside.gb_s == pytest.approx(370.8)
    fewer = inside_term(with_all_gpus(snapshot, nvlinks=links(0, 1)), bench)
    assert fewer is not None
    assert fewer.parts == 16
    assert inside_term(snapshot, bench_result()) is None
    assert inside_term(without(snapshot, "node02", "gpus"), bench) is None


def test_without_nvlinks_pcie_counts() -> None:
    snapshot, bench = measured(with_all_gpus(rdma_cluster(1), nvlinks=()))
    inside = inside_term(snapshot, bench)
    assert inside is not None
    assert inside.text.startswith("PCIe of 63")


def test_compute_capability_as_nccl_writes_it() -> None:
    assert compute_capability(node(rdma_cluster(1), "node01").facts) == 90
    assert compute_capability(everywhere(cluster(1), gpus=()).nodes[0].facts) == 0


def test_bridges_between_pairs_leave_the_rest_to_pcie_and_know_no_limit() -> None:
    inside = inside_term(*measured(bridged(), ranks=8))
    assert inside is not None
    assert inside.gb_s == pytest.approx(63, rel=0.01)
    assert inside.spec_gb_s is None
    assert inside.text.endswith("as NVLinks join only some of them")


def test_of_two_bridged_gpus_that_are_used_the_bridge_counts() -> None:
    snapshot, bench = measured(bridged(), ranks=2)
    inside = inside_term(snapshot, on_gpus(bench, 2, 3))
    assert inside is not None
    assert inside.gb_s == pytest.approx(240)
    across = inside_term(snapshot, on_gpus(bench, 3, 4))
    assert across is not None
    assert across.text.startswith("PCIe")
    assert inside_term(snapshot, bench) is None  # which two are used is not told


def test_links_to_a_switch_join_all_gpus() -> None:
    remotes = tuple(NvLink(link, True, SWITCH) for link in range(18))
    inside = inside_term(*measured(with_all_gpus(rdma_cluster(1), nvlinks=remotes), ranks=8))
    assert inside is not None
    assert inside.gb_s == pytest.approx(370.8)


def test_only_an_nvswitch_sums_whatever_the_compute_capability_is() -> None:
    remotes = tuple(NvLink(link, True, SWITCH) for link in range(18))
    switched = with_all_gpus(rdma_cluster(1), nvlinks=remotes)
    assert switches_may_sum(switched)
    assert switches_may_sum(rdma_cluster(1))  # what the links lead to was not read
    assert not switches_may_sum(with_all_gpus(switched, compute_capability="8.0"))
    assert not switches_may_sum(with_all_gpus(rdma_cluster(1), nvlinks=(), compute_capability="12.0"))
    assert not switches_may_sum(bridged("9.0"))
    assert not switches_may_sum(everywhere(cluster(1), gpus=()))


def test_the_gpu_that_a_process_told() -> None:
    facts = rdma_cluster(1).nodes[0].facts
    process = some(node_log("node01", 0, of=1, **IB).processes)[0]
    told = gpu_of(replace(process, bus_id="14000"), facts)
    assert told is not None
    assert (told.pci, told.index) == ("0000:14:00.0", 0)
    assert gpu_of(replace(process, bus_id="fe000"), facts) is None
    assert gpu_of(replace(process, bus_id=""), facts) is None
