"""A whole benchmark on the stand-in: the figures are true, and of a slow GPU `bench-slow-rank` says what is slow."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.measure.blame_gpus import CLOCK_LOSS, COMPUTE_LOSS, MEMORY_LOSS, PCIE_LOSS
from ncclcheck.measure.links.outliers import NODE_LOSS
from ncclcheck.model.bench import BenchPlan, BenchResult
from ncclcheck.model.finding import Finding
from ncclcheck.model.snapshot import Snapshot
from tests.bench.cuda_machine import Gpu, Machine
from tests.bench.gpu.stand_in_group import MI, StandInGroup
from tests.builders import cluster
from tests.checks.running import run

pytestmark = pytest.mark.slow  # imports torch
HOSTS = tuple(f"node{rank // 2 + 1:02}" for rank in range(6))
CLOCKS = (1980.0, 1965.0, 1950.0, 1980.0, 1965.0, 1965.0)
USUAL_MHZ = 1965.0  # the median of the others of the culprit
CULPRIT = 3
RAIL_GB_S = 48.5
PLAN = BenchPlan("nccl", ("all_reduce", "all_to_all"), (MI, 2 * MI), "float32", 2, 12, 5.0, verify=False)


def takes_us(_op: str, size_bytes: int) -> float:
    """Return the true time of a collective."""
    return 20.0 + size_bytes / 50e3


SHORT = replace(PLAN, ops=("all_reduce",), sizes_bytes=(MI,), iters=4)


def measured(
    monkeypatch: pytest.MonkeyPatch, plan: BenchPlan = PLAN, rail_gb_s: float = RAIL_GB_S, **changes: Any
) -> tuple[BenchResult, list[Finding]]:
    """Return a benchmark of six GPUs whose culprit is changed so, and what is said of slow ranks."""
    gpus = [Gpu(clock, wakes_late_us=12.0 * rank) for rank, clock in enumerate(CLOCKS)]
    for name, value in changes.items():
        setattr(gpus[CULPRIT], name, value)

    def link_gb_s(source: int, target: int) -> float:
        if HOSTS[source] == HOSTS[target]:
            return 390.0
        return rail_gb_s if CULPRIT in (source, target) else RAIL_GB_S

    group = StandInGroup(Machine(gpus), monkeypatch, takes_us, hosts=HOSTS, link_gb_s=link_gb_s)
    points, isolation = group.whole(plan)
    assert [gpu.rank for gpu in isolation.gpus] == list(range(len(HOSTS)))
    result = BenchResult("nccl", len(HOSTS), 3, plan, "NET/IB/0", tuple(points), isolation=isolation)
    snapshot: Snapshot = replace(cluster(3), bench=result)
    return result, list(run("bench-slow-rank", snapshot).findings)


def are_true(result: BenchResult) -> None:
    """Every figure is within 1 % of the true time."""
    for point in result.points:
        assert point.time_us.mean == pytest.approx(takes_us(point.op, point.size_bytes), rel=0.01)
    assert len(result.points) == len(PLAN.ops) * len(PLAN.sizes_bytes)


def test_clocks_that_are_15_to_30_mhz_apart_are_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    result, found = measured(monkeypatch)
    are_true(result)
    assert not found


def test_a_gpu_at_1755_mhz_is_throttled_and_no_figure_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    result, (found,) = measured(monkeypatch, clock_mhz=1755.0)
    are_true(result)
    assert found.hosts == ("node02",)
    assert "rank 3 on node02" in found.summary
    assert "throttled" in found.summary
    assert not {"slow memory", "slow PCIe", "slow rail"} & set(found.summary.split("; "))


@pytest.mark.parametrize(
    ("name", "usual", "loss", "part"),
    [
        ("clock_mhz", USUAL_MHZ, CLOCK_LOSS, "throttled"),
        ("tflop_s", 700.0 * USUAL_MHZ / CLOCKS[CULPRIT], COMPUTE_LOSS, "throttled"),
        ("memory_gb_s", 2500.0, MEMORY_LOSS, "slow memory"),
        ("pcie_gb_s", 55.0, PCIE_LOSS, "slow PCIe"),
        ("rail_gb_s", RAIL_GB_S, NODE_LOSS, "slow rail"),
    ],
)
def test_what_is_below_its_limit_is_named_and_what_is_above_it_is_not(
    monkeypatch: pytest.MonkeyPatch, name: str, usual: float, loss: float, part: str
) -> None:
    _, found = measured(monkeypatch, SHORT, **{name: usual * (1 - loss + 0.02)})
    assert not found
    _, (found_below,) = measured(monkeypatch, SHORT, **{name: usual * (1 - loss - 0.02)})
    assert f"rank {CULPRIT} on {HOSTS[CULPRIT]}" in found_below.summary
    assert part in found_below.summary
