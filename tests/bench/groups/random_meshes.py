"""Eight gloo ranks that measure one random mesh after the other, each with its mix. What hangs ends after a minute.

`python -m tests.bench.groups.random_meshes SEED...` prints a line of JSON for each mesh that came to its end.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from random import Random

from ncclcheck.bench.gpu.device import open_device
from ncclcheck.bench.groups.mesh_benchmark import measure_mesh
from ncclcheck.bench.point import prepare
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.mesh.groups import group_sizes
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension
from ncclcheck.model.benchmarks.mesh_bench import MeshCall, MeshPlan
from ncclcheck.model.codec import encode

WORLD, LIMIT_S = 8, 60.0
SHAPES = ((8,), (2, 4), (4, 2), (2, 2, 2), (2, 1, 4), (1, 8), (2, 2, 1, 2))


def random_plan(seed: int) -> MeshPlan:
    """A mesh of eight ranks in a random shape, at times with a dimension over others, and random calls in it."""
    random = Random(seed)  # noqa: S311 (a sample, no secret)
    sizes = random.choice(SHAPES)
    dimensions = tuple(MeshDimension(f"d{number}", size) for number, size in enumerate(sizes))
    over = tuple(dimension.name for dimension in dimensions if random.random() < 0.5)
    below = 1
    for dimension in dimensions:
        below *= dimension.size if dimension.name in over else 1
    halved = below // random.choice((1, 2))
    overlaid = (MeshDimension("ep", halved, over),) if over and halved > 1 and random.random() < 0.6 else ()
    mesh = Mesh(dimensions, overlaid)
    names = [name for name, size in group_sizes(mesh).items() if size > 1]
    calls = [
        MeshCall(random.choice(names), random.choice(list(COLLECTIVES)), random.choice((256, 4096, 100_000)))
        for _ in range(random.randint(2, 6))
    ]
    return MeshPlan(mesh, tuple(dict.fromkeys(calls)), mix=True, budget_s=0.05)


def main() -> int:
    """Fork the ranks, and return 0 if all of them came to the end of all meshes."""
    plans = [random_plan(int(seed)) for seed in sys.argv[1:]]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for number in range(WORLD):
            child = os.fork()
            if child == 0:
                os._exit(_rank(number, Path(folder) / "store", plans))
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return max(map(abs, codes))


def _rank(number: int, store: Path, plans: list[MeshPlan]) -> int:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    limit = timedelta(seconds=LIMIT_S)
    dist.init_process_group(
        "gloo", store=dist.FileStore(str(store), WORLD), rank=number, world_size=WORLD, timeout=limit
    )
    for mesh in plans:
        plan = BenchPlan("gloo", ("all_reduce",), (1024,), "float32", 0, 2, 1.0, verify=True, mesh=mesh)
        task = WorkerTask(number, WORLD, number, "", 0, "", plan, ("vm",) * WORLD)
        found = measure_mesh(prepare(task, open_device("gloo", number), ProgressPage(None)), mesh)
        if number == 0:
            os.write(1, encode(found) + b"\n")
    dist.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
