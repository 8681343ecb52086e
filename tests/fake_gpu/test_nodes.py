"""bench on several nodes, network namespaces, whose ranks are in one group of torch's own NCCL."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ncclcheck.measure.collectives import COLLECTIVES
from tests.facts.compiled import shared_library
from tests.fake_gpu.stack import ARTEFACTS, BENCH, LIMIT_S, FakeTorch, ranks_measuring
from tests.lab.launched import Told, flags, read, report_file, told
from tests.lab.namespaces import pids
from tests.lab.nodes import REPOSITORY, Lab, Node
from tests.lab.process import Running, wait_all

pytestmark = [pytest.mark.fake_gpu, pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
Start = Callable[..., dict[str, Running]]


PRELOADED = 'LD_PRELOAD=$0:$LD_PRELOAD exec "$@"'


@pytest.fixture(scope="session")
def unix_paths(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library with which the fake NCCL of several network namespaces meets."""
    source = Path(__file__).with_name("unix_paths.c").read_text()
    return shared_library(tmp_path_factory.mktemp("fake-nccl") / "unix_paths.so", source, "-ldl")


@pytest.fixture
def start(unix_paths: str, torch: FakeTorch) -> Start:
    """Starts `ncclcheck WORDS` on every node of a lab, each with two GPUs."""

    def started(lab: Lab, *words: str, env: Mapping[str, str] | None = None) -> dict[str, Running]:
        own = {"GPUS": "2", "PYTHONPATH": str(REPOSITORY), "FAKENCCL_FOLDER": str(lab.folder)}
        preload = ["sh", "-c", PRELOADED, unix_paths]
        running = {}
        for node in lab.nodes:
            argv = torch.command(*words, *flags(lab, node), "--output", str(report_file(node)))
            argv[3:3] = preload
            running[node.name] = node.start(argv, {**own, **(env or {})}, fresh=True)
        return running

    return started


def failures(outcome: Told) -> list[tuple[int, str, str]]:
    """The ranks that are named, with their nodes and what became of them."""
    assert outcome.report is not None, str(outcome.finished)
    return [(found["rank"], found["host"], found["state"]) for found in outcome.report["bench"]["failures"]]


def test_all_collectives_measure_and_verify_on_two_nodes(lab: LabOf, start: Start) -> None:
    two = lab(2)
    running = start(two, *BENCH, "--ops", "all", "--sizes", "64K", "--iters", "4")
    first = told(two, running)["node1"]
    assert failures(first) == []
    assert first.report is not None
    bench = first.report["bench"]
    assert (bench["backend"], bench["world_size"], bench["nodes"]) == ("nccl", 4, 2)
    assert [(point["op"], point["wrong"]) for point in bench["points"]] == [(op, 0) for op in COLLECTIVES]
    found = first.report["findings"]
    assert {finding["slug"] for finding in found if finding["severity"] == "error"} <= ARTEFACTS
    assert two.leftovers() == ()


@pytest.mark.parametrize("peers", ["error", "hang"])
def test_a_rank_killed_on_the_second_node_is_named_with_its_node(
    lab: LabOf, start: Start, peers: str
) -> None:
    two = lab(2)
    words = (*BENCH, "--ops", "all_reduce", "--sizes", "64K", "--iters", "100000")
    running = start(two, *words, env={"FAKENCCL_DEAD": peers})
    processes = [*running.values()]
    ranks = ranks_measuring(
        lambda: [pid for node in two.nodes for pid in pids(node.namespace)],
        4,
        lambda: all(process.alive for process in processes),
    )
    os.kill(ranks[3], signal.SIGKILL)
    outcomes = told(two, running)
    assert failures(outcomes["node1"]) == [(3, "node2", "died")]
    assert {Path(f"/proc/{pid}").exists() for pid in ranks.values()} == {False}


def as_task(node: Node, local_rank: int) -> dict[str, str]:
    """What `srun -N2 --ntasks-per-node=2 --gpus-per-task=1` tells a task."""
    return {
        "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "node[1-2]", "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_NODEID": str(node.rank),
        "SLURM_LOCALID": str(local_rank), "SLURM_PROCID": str(2 * node.rank + local_rank), "GPUS": "1",
        "MASTER_ADDR": node.lab.nodes[0].address,
    }  # fmt: skip


@pytest.mark.parametrize("meets_in", ["", "folder"])
def test_each_task_with_a_gpu_of_its_own_starts_its_rank_on_its_cpus(
    lab: LabOf, unix_paths: str, torch: FakeTorch, tmp_path: Path, meets_in: str
) -> None:
    two = lab(2)
    cpus = sorted(os.sched_getaffinity(0))[:2]
    meeting = ("--meet-in", str(tmp_path)) if meets_in else ()
    words = (*BENCH, "--ops", "all_reduce", "--sizes", "64K", "--iters", "100000", *meeting)
    own = {"PYTHONPATH": str(REPOSITORY), "FAKENCCL_FOLDER": str(two.folder)}
    tasks: dict[int, Running] = {}
    for node in two.nodes:
        for local_rank in (0, 1):
            argv = torch.command(*words, "--output", str(report_file(node)))
            argv[3:3] = [
                "taskset",
                "-c",
                str(cpus[local_rank % len(cpus)]),
                "sh",
                "-c",
                PRELOADED,
                unix_paths,
            ]
            tasks[2 * node.rank + local_rank] = node.start(
                argv, {**own, **as_task(node, local_rank)}, fresh=True
            )
    ranks = ranks_measuring(
        lambda: [pid for node in two.nodes for pid in pids(node.namespace)],
        4,
        lambda: all(task.alive for task in tasks.values()),
    )
    assert {rank: parent_of(pid) for rank, pid in ranks.items()} == {
        rank: task.pid for rank, task in tasks.items()
    }
    assert [os.sched_getaffinity(ranks[rank]) for rank in (0, 1)] == [{cpus[0]}, {cpus[1 % len(cpus)]}]
    os.kill(tasks[3].pid, signal.SIGKILL)
    finished = wait_all([*tasks.values()], LIMIT_S)
    outcome = read(two["node1"], finished[0])
    assert failures(outcome) == [(3, "node2", "lost")], str(outcome.finished)
    assert outcome.report is not None
    assert (outcome.report["bench"]["world_size"], outcome.report["bench"]["nodes"]) == (4, 2)


def parent_of(pid: int) -> int:
    """The process that started a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
