"""NC803 bench-slow-rank."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.measure.links.pairing import rounds_of_pairs
from ncclcheck.model.bench import CoreSpeed, GpuHealth, GpuSpeed, Isolation, LinkSpeed, RankFailure
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_point, with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run


def test_ranks_that_come_together_are_silent() -> None:
    assert is_silent("bench-slow-rank", with_bench(cluster(4)))


def test_the_rank_that_keeps_the_others_waiting_is_named() -> None:
    points = tuple(bench_point(1 << size, (9.0, 4.0, 600.0, 7.0)) for size in (20, 21, 22))
    found = finding("bench-slow-rank", with_bench(cluster(4), *points))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "rank 2 on node03 delays the others: typically 0.60 ms, 60% of an iteration" in found.summary
    assert len(found.evidence) == 3


def test_without_times_of_ranks_nothing_is_known() -> None:
    bare = replace(bench_point(1 << 20, (1.0, 2.0)), ranks=())
    assert run("bench-slow-rank", with_bench(cluster(2), bare, world_size=2)).outcome == "unknown"
    assert run("bench-slow-rank", with_bench(cluster(4), points=())).outcome == "unknown"
    assert run("bench-slow-rank", replace(cluster(4), bench=Missing("error"))).outcome == "unknown"


def test_without_a_benchmark_or_with_one_rank_the_question_does_not_arise() -> None:
    assert run("bench-slow-rank", cluster(4)).outcome == "not_applicable"
    assert (
        run("bench-slow-rank", with_bench(cluster(1), bench_point(1 << 20, (0.0,)))).outcome
        == "not_applicable"
    )


def apart(
    nodes: int, *, slow_core: int | None = None, slow_sender: int | None = None, usual_gb_s: float = 0.12
) -> Snapshot:
    """A benchmark whose ranks and links were tried one by one."""
    cores = tuple(
        CoreSpeed(rank, f"node0{rank + 1}", 60_000.0 if rank == slow_core else 25_000.0, 25_000.0)
        for rank in range(nodes)
    )
    links = tuple(
        LinkSpeed(
            one,
            f"node0{one + 1}",
            other,
            f"node0{other + 1}",
            0.012 if one == slow_sender else usual_gb_s,
            0.1,
        )
        for pairs in rounds_of_pairs(nodes)
        for one, other in pairs
    )
    points = tuple(bench_point(1 << size, (0.0,) * nodes) for size in (20, 21))
    return with_bench(cluster(nodes), *points, isolation=Isolation(cores, links))


def test_equal_ranks_and_links_are_silent() -> None:
    assert is_silent("bench-slow-rank", apart(4))


def test_a_rank_whose_core_is_taken_is_named() -> None:
    found = finding("bench-slow-rank", apart(4, slow_core=1))
    assert found.hosts == ("node02",)
    assert "2.4 times as long as the others" in found.summary
    assert found.evidence[0].observed == "60.0 ms"


def test_a_node_with_a_slow_link_is_named_with_the_direction() -> None:
    found = finding("bench-slow-rank", apart(4, slow_sender=2))
    assert found.hosts == ("node03",)
    assert "rank 2 on node03 delays the others: its link is slow, in this direction only" in found.summary
    assert "sends with 96 Mbit/s, while 960 Mbit/s is usual" in found.summary
    assert len(found.evidence) == 3


def test_all_rates_of_a_finding_are_in_one_unit() -> None:
    for nodes in (2, 4):
        found = finding("bench-slow-rank", apart(nodes, slow_sender=1, usual_gb_s=1.2))
        assert {"0.096 Gbit/s", "9.6 Gbit/s"} <= {found.evidence[0].observed, found.evidence[0].expected}
        assert "0.096 Gbit/s, while 9.6 Gbit/s" in found.summary
        assert "Mbit/s" not in str(found)


def test_of_two_nodes_both_are_named_with_the_direction() -> None:
    found = finding("bench-slow-rank", apart(2, slow_sender=1))
    assert found.hosts == ("node02", "node01")
    assert "the link from node02 to node01" in found.summary
    assert "the sending side, the receiving side, or the path between them" in found.summary


def test_a_node_that_lacks_a_core_is_not_blamed_for_its_link_as_well() -> None:
    assert finding("bench-slow-rank", apart(4, slow_core=2, slow_sender=2)).summary.startswith(
        "rank 2 on node03 delays"
    )


def on_gpus(slow: GpuSpeed) -> Snapshot:
    """Four ranks with a GPU each; the one of `slow` is as given."""
    healthy = [GpuSpeed(rank, f"node0{rank + 1}", "H100", 1980.0, 700.0, 2500.0, 55.0) for rank in range(4)]
    gpus = tuple(slow if gpu.rank == slow.rank else gpu for gpu in healthy)
    return with_bench(cluster(4), isolation=Isolation(gpus=gpus))


THROTTLED = GpuSpeed(
    2, "node03", "H100", 1755.0, 620.0, 2500.0, 55.0,
    GpuHealth("0000:1b:00.0", ("hardware thermal slowdown",), 12, 0),
)  # fmt: skip


def test_a_throttled_gpu_is_named_with_the_reason() -> None:
    found = finding("bench-slow-rank", on_gpus(THROTTLED))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert (
        "its GPU 0000:1b:00.0 is slow: throttled (clock: 1755 MHz, the others 1980 MHz); "
        "NVML's reason: hardware thermal slowdown" in found.summary
    )
    seen = {evidence.subject: evidence.observed for evidence in found.evidence}
    assert seen["new NVLink errors"] == "12"
    assert "new PCIe replays" not in seen
    assert found.fixes[0].commands == (
        "nvidia-smi -i 0000:1b:00.0 -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK",
    )


def test_beside_a_rank_that_failed_nobody_is_called_late() -> None:
    points = tuple(bench_point(1 << size, (9.0, 4.0, 600.0, 7.0)) for size in (20, 21, 22))
    failure = RankFailure(1, "node02", "stopped", "all_reduce 64M, iteration 3", "", 20.0)
    result = run("bench-slow-rank", with_bench(cluster(4), *points, failures=(failure,)))
    assert result.findings == ()
    assert result.outcome == "unknown"
