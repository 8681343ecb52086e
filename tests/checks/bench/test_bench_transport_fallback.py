"""NC807 bench-transport-fallback."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.bench import NodeLog
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_point, with_bench
from tests.builders import cluster, everywhere, with_environment
from tests.checks.bench.nccl_runs import IB, NEW, OLD, SOCKET, node_log, with_nccl_bench
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import host_of, some
from tests.hardware_builders import rdma_cluster, with_rdma

SLUG = "bench-transport-fallback"


def run_over(snapshot: Snapshot, *kinds: dict[str, Any], text: str = NEW) -> Snapshot:
    """One rank on each node, over that kind of network."""
    logs = [
        node_log(host_of(rank), rank, of=len(kinds), text=text, **kind) for rank, kind in enumerate(kinds)
    ]
    return with_nccl_bench(snapshot, *logs, ranks=len(kinds))


@pytest.mark.parametrize("text", [OLD, NEW])
def test_rdma_that_is_there_and_used_is_silent(text: str) -> None:
    assert is_silent(SLUG, run_over(rdma_cluster(4), IB, IB, IB, IB, text=text))


@pytest.mark.parametrize("text", [OLD, NEW])
def test_sockets_where_rdma_is_there_are_an_error_on_each_host_with_its_ports(text: str) -> None:
    found = run(SLUG, run_over(rdma_cluster(2), SOCKET, SOCKET, text=text)).findings
    assert [(one.severity, one.hosts) for one in found] == [("error", ("node01",)), ("error", ("node02",))]
    assert "used TCP sockets although its RDMA ports mlx5_0:1" in found[0].summary
    assert "ncclcheck's model says IB" in found[0].summary


def test_sockets_on_one_node_of_several_name_that_node() -> None:
    found = finding(SLUG, run_over(rdma_cluster(3), IB, SOCKET, IB))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "node01 and node03 used another network" in found.summary


def test_sockets_on_one_node_without_rdma_are_named_too() -> None:
    snapshot = with_rdma(rdma_cluster(2), "node02", ports=(), device_files=())
    assert "NCCL cannot connect the two" in finding(SLUG, run_over(snapshot, IB, SOCKET)).summary


def test_sockets_that_the_job_asks_for_are_a_warning_with_the_setting() -> None:
    snapshot = rdma_cluster(2)
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, NCCL_IB_DISABLE="1")
    found = run(SLUG, run_over(snapshot, SOCKET, SOCKET)).findings
    assert {one.severity for one in found} == {"warning"}
    assert "since NCCL_IB_DISABLE=1" in found[0].summary
    assert found[0].fixes[0].text == "unset NCCL_IB_DISABLE=1"


def test_sockets_where_there_is_nothing_else_or_only_ports_that_are_down_are_silent() -> None:
    assert is_silent(SLUG, run_over(everywhere(cluster(2)), SOCKET, SOCKET))
    snapshot = rdma_cluster(2)
    for node in snapshot.nodes:
        ports = tuple(replace(port, state="DOWN") for port in some(node.facts.rdma).ports)
        snapshot = with_rdma(snapshot, node.host, ports=ports)
    assert is_silent(SLUG, run_over(snapshot, SOCKET, SOCKET))


def test_ranks_of_one_host_that_talk_over_the_network_are_an_error() -> None:
    logs = (node_log("node01", 0, 1, **IB), node_log("node02", 2, 3, **IB))
    found = run(SLUG, with_nccl_bench(rdma_cluster(2), *logs)).findings
    assert [one.hosts for one in found] == [("node01",), ("node02",)]
    assert "rank 0 to 1 via NET/IB/0/GDRDMA): neither P2P nor shared memory worked" in found[0].summary


def test_what_keeps_them_apart_is_named() -> None:
    logs = (node_log("node01", 0, 1, of=2, **SOCKET),)
    snapshot = with_environment(cluster(1), "node01", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    found = finding(SLUG, with_nccl_bench(snapshot, *logs, ranks=2))
    assert "NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1 separates them" in found.summary


def test_ranks_of_one_host_over_nvlink_are_silent() -> None:
    kind = {**IB, "via": "P2P/CUMEM"}
    assert is_silent(SLUG, with_nccl_bench(rdma_cluster(1), node_log("node01", 0, 1, 2, 3, **kind)))


def test_jobs_of_one_rank_each_are_named_by_nccls_own_word() -> None:
    logs = [node_log(host_of(rank), rank, of=1, **IB) for rank in range(2)]
    found = finding(SLUG, with_nccl_bench(rdma_cluster(2), *logs, ranks=2))
    assert (
        "2 processes were started as one job, but this benchmark is a job of its own with 1" in found.summary
    )


@pytest.mark.parametrize(
    "words",
    [
        {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"},
        {"PMI_SIZE": "4", "PMI_RANK": "1"},
        {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0"},
    ],
)
def test_a_launcher_that_started_more_processes_than_came_is_told(words: dict[str, str]) -> None:
    alone = with_bench(cluster(1), bench_point(1 << 20, (0.0, 0.0)), nodes=1)
    found = finding(SLUG, with_environment(alone, "node01", **words))
    assert (
        "4 processes were started as one job, but this benchmark is a job of its own with 1 of them"
        in found.summary
    )


def test_a_launcher_all_of_whose_processes_came_is_silent() -> None:
    words = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"}
    assert is_silent(SLUG, with_environment(with_bench(cluster(4)), "node01", **words))


def test_without_the_log_the_transport_is_not_known() -> None:
    snapshot = with_nccl_bench(rdma_cluster(2), node_log("node01", 0, 1, **{**IB, "via": "P2P/IPC"}))
    result = run(SLUG, snapshot)
    assert (result.outcome, "node02" in result.reason) == ("unknown", True)
    silent = with_nccl_bench(rdma_cluster(1), NodeLog("node01", Missing("absent", "NCCL wrote nothing")))
    assert run(SLUG, silent).outcome == "unknown"


def test_without_a_benchmark_the_question_does_not_arise() -> None:
    assert run(SLUG, cluster(2)).outcome == "not_applicable"
    assert run(SLUG, replace(cluster(2), bench=Missing("error"))).outcome == "unknown"
