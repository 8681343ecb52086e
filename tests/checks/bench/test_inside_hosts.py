"""Ranks of one host over the network: what separates them is an error, what NCCL prefers by itself is not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.checks.bench._inside_hosts import inside_hosts
from ncclcheck.model.bench import NodeLog
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding
from ncclcheck.model.gpu import NvLink
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_environment, with_facts
from tests.checks.bench.nccl_runs import IB, SOCKET, node_log, with_nccl_bench
from tests.fact_builders import some
from tests.gpu_builders import with_gpu
from tests.hardware_builders import above_gpu, gpu_of, rdma_cluster, with_device

HOST = "node01"
RANKS = 4


def log(kind: dict[str, Any] = IB, **changes: Any) -> NodeLog:
    """What four ranks of one host wrote that send to each other over that network, each with the GPU of its rail."""
    found = node_log(HOST, *range(RANKS), of=RANKS, **kind)
    processes = tuple(
        replace(process, **{"bus_id": gpu_of(rank)[5:].replace(":", "").replace(".", ""), **changes})
        for rank, process in enumerate(some(found.processes))
    )
    return replace(found, processes=processes)


def without_nvlink(snapshot: Snapshot | None = None) -> Snapshot:
    """A node whose GPUs have no NVLink, each with a card below its own switch."""
    snapshot = snapshot or rdma_cluster(1)
    for index in range(8):
        snapshot = with_gpu(snapshot, HOST, index, nvlinks=())
    return snapshot


def below_one_switch(snapshot: Snapshot) -> Snapshot:
    for rail in range(RANKS):
        snapshot = with_device(snapshot, HOST, gpu_of(rail), upstream=above_gpu(0))
    return snapshot


def found(snapshot: Snapshot, told: NodeLog) -> Finding:
    bench = some(with_nccl_bench(snapshot, told, ranks=RANKS).bench)
    (finding,) = inside_hosts(snapshot, bench)
    return finding


def test_cards_that_nccl_prefers_to_the_path_between_gpus_without_nvlink_are_no_fault() -> None:
    finding = found(without_nvlink(), log())
    assert (finding.severity, finding.hosts) == ("info", (HOST,))
    assert "counts on more bandwidth" in finding.summary
    assert "NCCL_NET_DISABLE_INTRA=1" in finding.fixes[0].text


def test_a_log_that_does_not_tell_the_gpus_is_judged_by_all_of_the_node() -> None:
    assert found(without_nvlink(), log(bus_id="")).severity == "info"
    assert found(rdma_cluster(1), log(bus_id="")).severity == "error"


def test_gpus_with_nvlink_do_not_prefer_the_network() -> None:
    finding = found(rdma_cluster(1), log())
    assert finding.severity == "error"
    assert "neither P2P nor shared memory worked" in finding.summary


def test_nvlinks_to_other_gpus_do_not_join_the_two() -> None:
    snapshot = rdma_cluster(1)
    for index in range(8):
        snapshot = with_gpu(snapshot, HOST, index, nvlinks=(NvLink(0, True, gpu_of(index ^ 4)),))
    assert found(snapshot, log()).severity == "info"


def test_sockets_and_cards_without_gpudirect_are_not_preferred_to_the_path_between_the_gpus() -> None:
    assert found(without_nvlink(), log(SOCKET)).severity == "error"
    assert found(without_nvlink(), log({**IB, "via": "NET/IB/0"})).severity == "error"


def test_gpus_of_an_older_kind_that_only_receive_by_gpudirect_are_no_fault() -> None:
    sends, receives = log({**IB, "via": "NET/IB/0"}), log()
    both = tuple(
        replace(first, links=(*first.links, *second.links))
        for first, second in zip(some(sends.processes), some(receives.processes), strict=True)
    )
    assert found(without_nvlink(), replace(sends, processes=both)).severity == "info"


def test_gpus_below_one_switch_are_as_near_to_each_other_as_to_a_card() -> None:
    snapshot = below_one_switch(without_nvlink())
    assert found(snapshot, log()).severity == "error"
    with_file = with_environment(snapshot, HOST, NCCL_TOPO_FILE="/opt/topo.xml")
    assert found(with_file, log()).severity == "info"  # the file, which is not read, may say otherwise
    for index in range(RANKS):  # without P2P their path leads through the CPU
        snapshot = with_gpu(snapshot, HOST, index, peers=())
    assert found(snapshot, log()).severity == "info"


def test_ranks_that_nccl_takes_for_those_of_several_hosts_are_separated() -> None:
    assert found(without_nvlink(), log(local_ranks=1)).severity == "error"
    assert found(without_nvlink(), log(local_ranks=RANKS)).severity == "info"


@pytest.mark.parametrize(
    "settings",
    [
        {"NCCL_SHM_DISABLE": "1"},
        {"NCCL_HOSTID": "a"},
        {"NCCL_P2P_DISABLE": "1"},
        {"NCCL_P2P_LEVEL": "loc"},
    ],
)
def test_a_variable_that_separates_them_is_named(settings: dict[str, str]) -> None:
    finding = found(with_environment(without_nvlink(), HOST, **settings), log())
    assert finding.severity == "error"
    ((name, value),) = settings.items()
    assert f"{name}={value} separates them" in finding.summary


@pytest.mark.parametrize(
    "settings", [{"NCCL_SHM_DISABLE": "0"}, {"NCCL_P2P_LEVEL": "NVL"}, {"NCCL_P2P_DISABLE": "0"}]
)
def test_a_variable_that_separates_nobody_is_not_blamed(settings: dict[str, str]) -> None:
    assert found(with_environment(without_nvlink(), HOST, **settings), log()).severity == "info"


def test_what_was_not_read_proves_no_fault() -> None:
    gpus = some(without_nvlink().nodes[0].facts.gpus)
    assert found(with_facts(cluster(1), HOST, gpus=gpus), log()).severity == "info"
    assert found(with_facts(cluster(1), HOST, gpus=()), log()).severity == "info"
    assert found(with_facts(cluster(1), HOST, gpus=Missing("timeout", "NVML")), log()).severity == "info"
