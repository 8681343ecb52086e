"""What is said of a slow rail."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ncclcheck.checks.bench._rails import rail_findings, rail_ranks
from ncclcheck.measure.links.rails import rail_rounds
from ncclcheck.model.bench import GpuHealth, GpuSpeed, Isolation, LinkSpeed
from tests.bench_builders import with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent


def isolation(nodes: int, gb_s: Callable[[int, int], float]) -> Isolation:
    """Nodes with four GPUs each."""
    hosts = [f"node0{rank // 4 + 1}" for rank in range(4 * nodes)]
    links = tuple(
        LinkSpeed(a, hosts[a], b, hosts[b], gb_s(a, b)) for pairs in rail_rounds(hosts) for a, b in pairs
    )
    gpus = tuple(
        GpuSpeed(rank, host, "H100", 1980.0, 700.0, 2500.0, 55.0, GpuHealth(f"0000:0{rank % 4}:00.0"))
        for rank, host in enumerate(hosts)
    )
    return Isolation(links=links, gpus=gpus)


def test_a_slow_rail_is_named_with_its_gpu() -> None:
    of_one = isolation(3, lambda a, b: 20.0 if 5 in (a, b) else 48.0)
    found = finding("bench-slow-rank", with_bench(cluster(3), isolation=of_one))
    assert found.hosts == ("node02",)
    assert (
        "rank 5 on node02 delays the others: slow rail: its GPU 0000:01:00.0 sends 160 Gbit/s and receives "
        "160 Gbit/s with rank 1, 9 on node01 and node03, while 384 Gbit/s is usual" in found.summary
    )
    assert is_silent("bench-slow-rank", with_bench(cluster(3), isolation=isolation(3, lambda *_: 48.0)))


def test_of_two_nodes_both_ends_are_named() -> None:
    (found,) = rail_findings(isolation(2, lambda a, b: 20.0 if 5 in (a, b) else 48.0), set())
    assert found.hosts == ("node01", "node02")
    assert "either end, rank 1 or rank 5, or the way between them" in found.summary


def test_errors_of_links_are_evidence_of_a_slow_rail_and_said_once() -> None:
    of_one = isolation(3, lambda a, b: 20.0 if 5 in (a, b) else 48.0)
    erring = tuple(
        replace(
            gpu,
            health=replace(
                gpu.health, nvlink_errors=5000 * (gpu.rank == 5), pcie_replays=900 * (gpu.rank == 5)
            ),
        )
        for gpu in of_one.gpus
    )
    found = finding("bench-slow-rank", with_bench(cluster(3), isolation=replace(of_one, gpus=erring)))
    assert "slow rail" in found.summary
    assert "NVML: new NVLink errors of rank 5: 5000; NVML: new PCIe replays of rank 5: 900" in found.summary
    assert [(seen.subject, seen.observed) for seen in found.evidence[1:]] == [
        ("new NVLink errors of rank 5", "5000"),
        ("new PCIe replays of rank 5", "900"),
    ]
    two = isolation(2, lambda a, b: 20.0 if 5 in (a, b) else 48.0)
    (either,) = rail_findings(replace(two, gpus=erring), set())
    assert (either.evidence[1].hosts, either.evidence[1].observed) == (("node02",), "5000")
    assert rail_ranks(two, set()) == {1, 5}


def test_a_rail_behind_a_slow_pcie_link_is_not_named_as_well() -> None:
    of_one = isolation(3, lambda a, b: 20.0 if 5 in (a, b) else 48.0)
    slow = tuple(replace(gpu, host_gb_s=20.0) if gpu.rank == 5 else gpu for gpu in of_one.gpus)
    found = finding("bench-slow-rank", with_bench(cluster(3), isolation=replace(of_one, gpus=slow)))
    assert "slow PCIe" in found.summary
    assert not list(rail_findings(isolation(2, lambda a, b: 20.0 if 5 in (a, b) else 48.0), {5}))
