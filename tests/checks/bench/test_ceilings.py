"""Which term binds, how much of it was reached, and what explains a figure above it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.checks.bench._ceilings import best_points, binding_backends, ceilings
from ncclcheck.model.bench import BenchPlan, BenchResult, Op, Point
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import Fabric, FabricState
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_point, bench_result
from tests.builders import cluster, with_interfaces
from tests.checks.bench.nccl_runs import IB, nccl_point, node_log, with_nccl_bench
from tests.fact_builders import interface, some
from tests.gpu_builders import with_all_gpus, with_gpu
from tests.hardware_builders import nic_of, rdma_cluster, with_ports
from tests.probe_builders import timed_probes

M = 1 << 20


def point(op: Op, size_bytes: int, busbw_gb_s: float) -> Point:
    return replace(bench_point(size_bytes, (0.0, 0.0)), op=op, busbw_gb_s=busbw_gb_s)


def on_ethernet(
    *points: Point, mbps: int | None = 1000, gbit_s: float = 0.957
) -> tuple[Snapshot, BenchResult]:
    """Two nodes on a link of 1 Gbit/s, or on virtual interfaces of which only the measured bandwidth is known."""
    snapshot = cluster(2)
    for number in (1, 2):
        own = interface("eth0", f"10.0.0.{number}/24", kind="physical" if mbps else "virtual")
        own = replace(own, speed_mbps=mbps) if mbps else own
        snapshot = with_interfaces(snapshot, f"node0{number}", own)
    snapshot = replace(snapshot, probes=timed_probes(2, gbit_s=gbit_s))
    places = {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}
    plan = BenchPlan("gloo", ("all_reduce", "all_gather"), (M, 16 * M), "float32", 5, None, 20.0, True)
    return snapshot, replace(bench_result(*points), plan=plan, places=places, world_size=2, nodes=2)


def test_one_gbit_on_eth0_binds_and_95_percent_of_it_were_reached() -> None:
    snapshot, bench = on_ethernet(point("all_reduce", 16 * M, 0.119))
    (one,) = ceilings(replace(snapshot, probes=Missing("absent", "none")), bench).ceilings
    assert (one.binds, round(one.reached, 2), one.source) == ("1.0 Gbit/s on eth0", 0.95, "link-speed")
    assert one.limit_gb_s == 0.125


def test_where_the_measured_bandwidth_is_lower_it_binds_and_the_link_still_limits() -> None:
    snapshot, bench = on_ethernet(point("all_reduce", 16 * M, 0.117), gbit_s=0.95)
    (one,) = ceilings(snapshot, bench).ceilings
    assert one.source == "measured"
    assert one.binds.endswith("(as measured)")
    assert one.limit_gb_s == 0.125
    assert one.limited_by == "1.0 Gbit/s on eth0"


def test_what_was_measured_is_no_ceiling_where_the_benchmark_got_more_through() -> None:
    snapshot, bench = on_ethernet(
        point("all_reduce", 16 * M, 0.119), point("all_gather", 16 * M, 0.079), mbps=None, gbit_s=0.6
    )
    found = {ceiling.op: ceiling for ceiling in ceilings(snapshot, bench).ceilings}
    assert found["all_reduce"].binds == "0.95 Gbit/s on eth0 (the highest measured there)"
    assert found["all_reduce"].reached == 1.0
    assert 0.6 < found["all_gather"].reached < 0.7


def test_a_speed_that_the_link_exceeds_is_not_believed() -> None:
    snapshot, bench = on_ethernet(point("all_reduce", 16 * M, 0.6), mbps=1000, gbit_s=4.9)
    (one,) = ceilings(snapshot, bench).ceilings  # a virtual card that claims 1 Gbit/s
    assert (one.source, one.limit_gb_s, one.limited_by) == ("measured", None, "")
    assert one.binds.endswith("(as measured)")
    (alone,) = ceilings(replace(snapshot, probes=Missing("absent", "none")), bench).ceilings
    assert alone.binds == "4.8 Gbit/s on eth0 (the highest measured there, more than the speed it claims)"
    assert (alone.limit_gb_s, alone.label) == (None, "")
    small = replace(bench, points=(point("all_reduce", 1 << 16, 0.6),))
    (told,) = ceilings(replace(snapshot, probes=Missing("absent", "none")), small).ceilings
    assert told.limit_gb_s == 0.125


def test_virtual_interfaces_without_a_measurement_are_not_known() -> None:
    snapshot, bench = on_ethernet(point("all_reduce", 16 * M, 0.117), mbps=None)
    found = ceilings(replace(snapshot, probes=Missing("absent", "none")), bench)
    assert found.ceilings == ()
    assert "has no speed of its own" in found.why


def test_the_backend_binds_where_another_op_fills_the_same_link() -> None:
    snapshot, bench = on_ethernet(
        point("all_reduce", 16 * M, 0.117), point("all_gather", 16 * M, 0.079), mbps=None, gbit_s=0.957
    )
    told = binding_backends(bench, ceilings(snapshot, bench).ceilings)
    assert list(told) == ["all_gather"]
    assert "all_gather reached 6" in told["all_gather"]
    assert "all_reduce 100%" in told["all_gather"]
    assert "the bottleneck is the backend (gloo), not the link" in told["all_gather"]


def test_alone_it_is_judged_by_the_measured_bandwidth() -> None:
    snapshot, bench = on_ethernet(point("all_gather", 16 * M, 0.079), mbps=None)
    assert (
        "TCP was measured to carry"
        in binding_backends(bench, ceilings(snapshot, bench).ceilings)["all_gather"]
    )


def test_small_messages_say_nothing_of_the_backend_and_neither_does_a_run_with_a_late_rank() -> None:
    snapshot, bench = on_ethernet(point("all_gather", 1 << 16, 0.01), mbps=None)
    assert binding_backends(bench, ceilings(snapshot, bench).ceilings) == {}
    late = replace(bench_point(16 * M, (0.0, 900.0, 0.0, 0.0)), op="all_gather", busbw_gb_s=0.05)
    snapshot, bench = on_ethernet(late, mbps=None)
    assert binding_backends(bench, ceilings(snapshot, bench).ceilings) == {}


def h100s(
    nodes: int, busbw_gb_s: float, algorithm: str = "RING", op: Op = "all_reduce"
) -> tuple[Snapshot, BenchResult]:
    ranks = 8 * nodes
    logs = [
        node_log(
            f"node0{node + 1}", *range(8 * node, 8 * node + 8), of=ranks, **{**IB, "algorithm": algorithm}
        )
        for node in range(nodes)
    ]
    measured = nccl_point(op, 1 << 30, busbw_gb_s, ranks, nodes)
    snapshot = with_nccl_bench(rdma_cluster(nodes), *logs, points=(measured,), ranks=ranks)
    return snapshot, some(snapshot.bench)


def test_what_lifts_a_figure_above_the_ring_is_labelled() -> None:
    assert (
        ceilings(*h100s(2, 470.0, "TREE")).ceilings[0].label.startswith("a tree, which is faster than a ring")
    )
    assert ceilings(*h100s(2, 300.0)).ceilings[0].label.startswith("two nodes: NCCL's tree may")
    assert ceilings(*h100s(1, 480.0, "NVLS")).ceilings[0].label.startswith("NVLS: the switch reduces")
    assert ceilings(*h100s(4, 387.0, "COLLNET_DIRECT")).ceilings[0].label.startswith("SHARP")
    assert ceilings(*h100s(4, 400.0)).ceilings[0].label.startswith("above what a ring reaches")
    assert ceilings(*h100s(4, 360.0)).ceilings[0].label == ""
    assert ceilings(*h100s(2, 330.0, op="all_gather")).ceilings[0].label == ""


def gb200s(busbw_gb_s: float, via: str = "P2P/MNNVL") -> tuple[Snapshot, BenchResult]:
    """Four trays of four GB200 in one NVLink domain; by the network where `via` says so."""
    logs = [
        node_log(f"node0{node + 1}", *range(4 * node, 4 * node + 4), of=16, **{**IB, "via": via})
        for node in range(4)
    ]
    trays = with_all_gpus(rdma_cluster(4), compute_capability="10.0")
    measured = nccl_point("all_reduce", 16 << 30, busbw_gb_s, 16, 4)
    snapshot = with_nccl_bench(trays, *logs, points=(measured,), ranks=16)
    return snapshot, some(snapshot.bench)


def test_in_a_domain_of_multi_node_nvlink_nvlink_binds_and_not_the_network() -> None:
    (one,) = ceilings(*gb200s(882.5)).ceilings
    assert one.binds == "18 NVLinks of 40.1 GB/s per GPU"
    assert one.limit_gb_s is not None
    assert one.limit_gb_s > 882.5
    (off,) = ceilings(*gb200s(191.4, "NET/IB/0/GDRDMA")).ceilings
    assert (off.busbw_gb_s, off.limit_gb_s) == (200.0, 750.0)


def without_logs(
    busbw_gb_s: float,
    domain: str = "uuid.1",
    state: FabricState = "completed",
    channels: tuple[int, ...] = (0,),
    **env: str,
) -> tuple[Snapshot, BenchResult]:
    """The same trays with NCCL_DEBUG unset; node04's GPUs say so of their fabric, its node of its IMEX channels."""
    snapshot, _ = gb200s(busbw_gb_s)
    for node in snapshot.nodes:
        own = domain if node.host == "node04" else "uuid.1"
        for gpu in range(8):
            fabric = Fabric(state if node.host == "node04" else "completed", 0, domain=own)
            snapshot = with_gpu(snapshot, node.host, gpu, fabric=fabric)
    nodes = []
    for node in snapshot.nodes:
        driver = some(node.facts.gpu_driver)
        own_channels = channels if node.host == "node04" else (0, 1)
        facts = replace(node.facts, gpu_driver=replace(driver, imex_channels=own_channels))
        nodes.append(replace(node, facts=replace(facts, environment={**some(facts.environment), **env})))
    bench = replace(some(snapshot.bench), logs=())
    return replace(snapshot, nodes=tuple(nodes), bench=bench), bench


def test_without_logs_the_facts_say_that_nvlink_connects_the_nodes() -> None:
    (together,) = ceilings(*without_logs(882.5)).ceilings
    assert together.binds == "18 NVLinks of 40.1 GB/s per GPU"


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": "uuid.2"},
        {"domain": ""},
        {"state": "in-progress"},
        {"channels": ()},
        {"NCCL_MNNVL_ENABLE": "0"},
        {"NCCL_P2P_LEVEL": "loc"},
    ],
)
def test_nodes_that_nccl_would_not_join_by_nvlink_use_the_network(changes: dict[str, Any]) -> None:
    (apart,) = ceilings(*without_logs(191.4, **changes)).ceilings
    assert (apart.busbw_gb_s, apart.limit_gb_s) == (400.0, 750.0)


def test_only_cards_that_carry_data_count() -> None:
    logs = [node_log(f"node0{number + 1}", number, of=2, **IB) for number in range(2)]
    measured = nccl_point("all_gather", 1 << 30, 48.0, 2, 2)
    snapshot = with_nccl_bench(rdma_cluster(2), *logs, points=(measured,), ranks=2)
    (one,) = ceilings(snapshot, some(snapshot.bench)).ceilings
    assert (one.busbw_gb_s, round(one.reached, 2)) == (50.0, 0.96)
    assert "7 of 8 cards carry no data" in one.binds


def test_both_ports_of_a_card_that_are_one_network_device_carry_its_data() -> None:
    pairs = [(2 * card, 2 * card + 1) for card in range(4)]
    using = " ".join(
        f"[{card}]={{[{a}] mlx5_{a}:1/RoCE, [{b}] mlx5_{b}:1/RoCE}}" for card, (a, b) in enumerate(pairs)
    )
    kind = {**IB, "net": f"NET/IB : Using {using} [RO]; OOB eth0:10.0.0.1<0>"}
    logs = [node_log("node01", 0, 1, 2, 3, of=8, **kind), node_log("node02", 4, 5, 6, 7, of=8, **kind)]
    moved = tuple(
        replace(process, links=tuple(replace(link, via=f"NET/IB/{rank}/GDRDMA") for link in process.links))
        for rank, process in enumerate(some(logs[1].processes))
    )
    snapshot = rdma_cluster(2)
    for node in snapshot.nodes:
        ports = [
            replace(
                port,
                device=f"mlx5_{card * 2 + function}",
                rate_gbps=200.0,
                pci=f"{nic_of(card)[:-1]}{function}",
            )
            for card, port in enumerate(some(node.facts.rdma).ports[:4])
            for function in range(2)
        ]
        snapshot = with_ports(snapshot, node.host, *ports)
    measured = nccl_point("all_gather", 1 << 30, 100.0, 8, 2)
    snapshot = with_nccl_bench(
        snapshot, logs[0], replace(logs[1], processes=moved), points=(measured,), ranks=8
    )
    (one,) = ceilings(snapshot, some(snapshot.bench)).ceilings
    assert "4 x 400 Gbit/s" in one.binds
    assert "carry no data" not in one.binds


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_limit_is_never_below_the_ring(ranks: int) -> None:
    measured = nccl_point("all_reduce", 1 << 30, 300.0, ranks, 1)
    log = node_log("node01", *range(ranks), of=ranks, **{**IB, "via": "P2P/CUMEM"})
    snapshot = with_nccl_bench(rdma_cluster(1), log, points=(measured,), ranks=ranks)
    (one,) = ceilings(snapshot, some(snapshot.bench)).ceilings
    assert one.limit_gb_s is not None
    assert one.limit_gb_s >= one.busbw_gb_s


def test_a_limit_that_was_exceeded_is_none() -> None:
    assert ceilings(*h100s(2, 800.0)).ceilings[0].limit_gb_s is None


def test_one_rank_has_no_ceiling_and_the_best_point_counts() -> None:
    snapshot, bench = on_ethernet(point("all_reduce", M, 0.4), point("all_reduce", 16 * M, 0.117))
    assert ceilings(snapshot, replace(bench, world_size=1)).why.startswith("one rank")
    assert best_points(bench)["all_reduce"].size_bytes == 16 * M
    assert ceilings(snapshot, replace(bench, nodes=1)).why.startswith(
        "one node: what the links allow is not known"
    )
