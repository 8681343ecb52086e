"""Each rank and link by itself. Real ranks that do it are in `test_workers.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.bench.gpu.device import open_device
from ncclcheck.bench.parts_alone import (
    LEAST_BYTES,
    MOST_BYTES,
    claim_on_cores,
    isolate,
    most_proofs,
    transfer_bytes,
)
from ncclcheck.bench.point import prepare
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.model.bench import BenchPlan
from tests.bench_builders import bench_point

PLAN = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 0, 1, 5.0, verify=False)


def test_a_transfer_takes_a_moment_at_the_speed_of_the_collectives() -> None:
    point = bench_point(1 << 20, (0.0, 0.0))
    assert transfer_bytes([replace(point, busbw_gb_s=0.12), replace(point, busbw_gb_s=0.06)]) == 2_400_000
    assert transfer_bytes([replace(point, busbw_gb_s=400.0)]) == MOST_BYTES
    assert transfer_bytes([]) == LEAST_BYTES


def test_shared_cores_are_tried_more_often_where_few_ranks_take_turns() -> None:
    assert [most_proofs(count) for count in (2, 3, 4, 8, 16, 8000)] == [8, 8, 6, 3, 3, 3]


@pytest.mark.slow
@pytest.mark.usefixtures("group")
def test_a_rank_alone_does_its_work_and_has_no_links() -> None:
    task = WorkerTask(0, 1, 0, "127.0.0.1", 1, "test/", PLAN, ("node01",))
    page = ProgressPage(None)
    found = isolate(prepare(task, open_device("gloo", 0), page), [])
    (core,) = found.cores
    assert core.host == "node01"
    assert 0 < core.core_us <= core.work_us * 1.05
    assert found.links == ()
    assert not page.inside


def test_processes_that_are_scheduled_alike_have_the_same_claim() -> None:
    program = "from ncclcheck.bench.parts_alone import claim_on_cores; print(claim_on_cores())"
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def of_child(*before: str) -> int:
        argv = [*before, sys.executable, "-c", program]
        return int(subprocess.run(argv, env=environ, capture_output=True, check=True, timeout=30).stdout)

    assert of_child() == claim_on_cores() > 0
    assert of_child("nice", "-n", "5") != claim_on_cores()
