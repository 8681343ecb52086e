"""bench on torch's own NCCL group: every collective with verified data, CUDA graphs, damage that is found."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ncclcheck.measure.collectives import COLLECTIVES
from tests.fake_gpu.stack import BENCH, LIMIT_S, REPOSITORY, FakeTorch, run

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


def test_the_script_for_machines_with_a_gpu_ends_well_on_one(torch: FakeTorch, tmp_path: Path) -> None:
    if torch.version != "2.7.1":
        pytest.skip("the stack's driver is too old for this torch, which is an error by itself")
    page = tmp_path / "page.md"
    page.write_text("<!-- gpu: written by scripts/gpu_acceptance -->\n<!-- gpu: end -->\n")
    argv = torch.on_stack("python", "scripts/gpu_acceptance", "--sizes", "64K", "--page", str(page))
    env = {**os.environ, "GPUS": "1", "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(
        argv, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "`bench --ops all --cuda-graph`: 9 points" in page.read_text()
    assert " 0 wrong elements" in page.read_text()


def test_the_groups_of_a_mesh_and_their_mix_measure_and_verify(torch: FakeTorch, tmp_path: Path) -> None:
    words = (*BENCH, "--ops", "all_reduce,all_gather,all_to_all", "--sizes", "64K", "--iters", "6")
    outcome = run(torch, tmp_path, *words, "--mesh", "pp=2,tp=2", "--mix")
    mesh = outcome.report["bench"]["mesh"]
    assert mesh is not None, outcome.printed
    assert [(point["dimension"], point["op"]) for point in mesh["points"]] == [
        (name, op) for name in ("pp", "tp") for op in ("all_reduce", "all_gather", "all_to_all")
    ]
    assert {group["wrong"] for point in mesh["points"] for group in point["groups"]} == {0}
    assert all(point["alone_us"] > 0 for point in mesh["points"])
    assert mesh["mix"]["wrong"] == 0
    assert mesh["mix"]["overlapped_us"] > 0
    assert outcome.errors == set(), outcome.printed
