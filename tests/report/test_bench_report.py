"""The benchmark as reported: transport, ceiling, references, and what the figures were judged by."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from ncclcheck.model.bench import GpuSpeed, Isolation
from ncclcheck.model.bench_demands import BenchDemands
from ncclcheck.model.report import BenchReport
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.bench_report import bench_report
from ncclcheck.report.document import to_json
from tests.bench_builders import bench_point, with_bench
from tests.builders import cluster, with_environment
from tests.checks.bench.nccl_runs import IB, nccl_point, node_log, with_nccl_bench
from tests.fact_builders import some
from tests.hardware_builders import rdma_cluster
from tests.report.reports import report

G = 1 << 30


def made(snapshot: Snapshot) -> BenchReport:
    return bench_report(snapshot, some(snapshot.bench))


def p5(busbw_gb_s: float) -> Snapshot:
    logs = [node_log(f"node0{node + 1}", *range(8 * node, 8 * node + 8), of=16, **IB) for node in range(2)]
    return with_nccl_bench(
        rdma_cluster(2), *logs, points=(nccl_point("all_reduce", G, busbw_gb_s, 16, 2),), ranks=16
    )


def test_raw_samples_never_reach_the_report() -> None:
    point = replace(bench_point(1 << 20, (0.0, 0.0)), samples_us=(1.0, 2.0))
    snapshot = with_bench(cluster(2), point)
    assert made(snapshot).points[0].samples_us is UNSET
    assert "samples_us" not in to_json(report(snapshot=snapshot, command="bench"))


def test_the_transport_is_what_nccls_own_log_says() -> None:
    used = {row.what: row.value for row in made(p5(437.0)).used}
    assert (used["network"], used["transports"], used["channels"]) == ("IB", "NET/IB/GDRDMA", "16")
    assert used["algorithms"] == "AllReduce RING SIMPLE"
    assert used["RDMA devices"].startswith("mlx5_0:1/IB mlx5_1:1/IB")


def test_references_of_this_hardware_stand_beside_their_points() -> None:
    found = made(p5(437.0)).references
    assert {comparable.reference.busbw_gb_s for comparable in found} >= {436.9, 440.0}
    assert all(comparable.busbw_gb_s == 437.0 for comparable in found)


def test_the_scales_are_named_in_their_order() -> None:
    (remark,) = [one for one in made(p5(437.0)).remarks if one.startswith("judged by")]
    assert remark.startswith(
        "judged by what the links allow, by their speed; then the reference table (grade A"
    )
    late = with_bench(cluster(4), *(bench_point(1 << size, (9.0, 4.0, 600.0, 7.0)) for size in (20, 21, 22)))
    judged = made(late).remarks[-1]
    assert judged.startswith(
        "judged by the other ranks (rank 2 on node03 is late) and the floors that were demanded; "
    )
    assert "then the baseline last.json of 2026-01-01" in judged


def test_with_no_scale_at_all_it_says_so() -> None:
    snapshot = replace(with_bench(cluster(4)), bench_demands=BenchDemands())
    assert "no verdict on these figures" in made(snapshot).remarks[-1]


def test_gloo_has_no_log_and_no_reference() -> None:
    found = made(with_bench(cluster(4)))
    assert (found.used, found.references) == ((), ())


def test_the_report_says_which_torch_and_clocks_and_what_was_left_out() -> None:
    snapshot = p5(300.0)
    bench = some(snapshot.bench)
    (point,) = bench.points
    clocks = tuple(replace(rank, clock_mhz=1980.0 - 15 * rank.rank) for rank in point.ranks)
    snapshot = replace(snapshot, bench=replace(bench, points=(replace(point, ranks=clocks),)))
    snapshot = with_environment(snapshot, "node02", CUDA_LAUNCH_BLOCKING="1")
    remarks = made(snapshot).remarks
    assert any(remark.startswith("torch 2.") for remark in remarks)
    assert "measured with CUDA_LAUNCH_BLOCKING, as the job sets it on node02: it distorts times" in remarks
    assert any("(slowest: rank 15 on node02)" in remark for remark in remarks)
    gpus = tuple(GpuSpeed(n, f"node0{n + 1}", "H100", 1980.0 - 15 * n, 700.0, 2500.0, 55.0) for n in (0, 1))
    alone = made(replace(snapshot, bench=replace(some(snapshot.bench), isolation=Isolation(gpus=gpus))))
    assert alone.gpus == gpus
    assert any("1965 to 1980 MHz, 700 to 700 TFLOP/s" in remark for remark in alone.remarks)
    bench = replace(some(snapshot.bench), environment={"node02": {"CUDA_LAUNCH_BLOCKING": None}})
    remarks = made(replace(snapshot, bench=bench)).remarks
    assert "measured without CUDA_LAUNCH_BLOCKING, which the job sets on node02: it distorts times" in remarks
