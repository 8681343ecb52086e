"""bench on torch's own NCCL group: every collective with verified data, CUDA graphs, damage that is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.measure.collectives import COLLECTIVES
from tests.fake_gpu.stack import BENCH, FakeTorch, run

pytestmark = [pytest.mark.fake_gpu, pytest.mark.slow]
SIZES = (1024, 1 << 20)
ALL = (*BENCH, "--ops", "all", "--sizes", "1K,1M", "--iters", "6")


@pytest.mark.parametrize("graph", [(), ("--cuda-graph",)], ids=["calls", "graphs"])
def test_all_nine_collectives_measure_and_verify_on_four_gpus(
    torch: FakeTorch, tmp_path: Path, graph: tuple[str, ...]
) -> None:
    outcome = run(torch, tmp_path, *ALL, *graph)
    assert set(outcome.points) == {(op, size) for op in COLLECTIVES for size in SIZES}, outcome.printed
    assert {point["wrong"] for point in outcome.points.values()} == {0}
    assert all(point["busbw_gb_s"] > 0 for point in outcome.points.values())
    bench = outcome.report["bench"]
    assert (bench["backend"], bench["world_size"], bench["failures"]) == ("nccl", 4, [])
    assert outcome.errors == set(), outcome.printed


def test_a_job_with_one_of_two_gpus_gets_one_rank(torch: FakeTorch, tmp_path: Path) -> None:
    words = (*BENCH, "--ops", "all_gather", "--sizes", "64K", "--iters", "4")
    outcome = run(torch, tmp_path, *words, gpus=2, env={"CUDA_VISIBLE_DEVICES": "1"})
    assert outcome.report["bench"]["world_size"] == 1, outcome.printed
    assert outcome.points["all_gather", 64 << 10]["wrong"] == 0
