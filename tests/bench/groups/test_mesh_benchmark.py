"""Real gloo ranks: every group measured and verified, and no random mesh whose mix hangs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.bench.culprits import all_done
from ncclcheck.bench.supervise import start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.mesh_bench import MeshBench, MeshCall, MeshPlan
from tests.bench.test_workers import poll_until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
HOSTS = ("node01", "node01", "node02", "node02")


def test_every_group_of_every_dimension_is_measured_and_verified() -> None:
    calls = (MeshCall("dp", "all_reduce", 1 << 16), MeshCall("tp", "all_gather", 1 << 16))
    mesh = MeshPlan(parse_mesh("dp=2,tp=2"), calls, mix=True, budget_s=2.0)
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 1, 8, 2.0, verify=True, mesh=mesh)
    running = start([WorkerTask(rank, 4, rank, "127.0.0.1", 0, "test/", plan, HOSTS) for rank in range(4)],
                    {"GLOO_SOCKET_IFNAME": "lo"})  # fmt: skip
    try:
        poll_until(running, lambda states: all_done(states, 4))
        poll_until(running, lambda _: running.mesh)
        found = running.mesh
    finally:
        assert running.stop(5.0) == ()
    assert isinstance(found, MeshBench)
    across, inside = found.points
    assert (across.dimension, across.group_count, across.group_size, across.iters) == ("dp", 2, 2, 8)
    assert {group.ranks: group.nodes for group in across.groups} == {(0, 2): 2, (1, 3): 2}
    assert {group.ranks: group.nodes for group in inside.groups} == {(0, 1): 1, (2, 3): 1}
    assert across.groups[0].time_us >= across.groups[1].time_us > 0
    assert across.alone_us is not None
    assert across.contention == pytest.approx(across.groups[0].time_us / across.alone_us, rel=0.01)
    assert all(group.wrong == 0 for point in found.points for group in point.groups)
    assert found.mix is not None
    assert (found.mix.wrong, [share.dimension for share in found.mix.shares]) == (0, ["dp", "tp"])
    assert sum(share.share for share in found.mix.shares) == pytest.approx(1.0, abs=0.001)


@pytest.mark.further
def test_the_mix_of_random_meshes_ends_and_is_correct() -> None:
    """More of them: scripts/random_meshes."""
    command = [sys.executable, "-m", "tests.bench.groups.random_meshes", "7", "9", "12"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    meshes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(meshes) == 3
    for mesh in meshes:
        assert mesh["mix"]["wrong"] == 0
        assert all(group["wrong"] == 0 for point in mesh["points"] for group in point["groups"])
