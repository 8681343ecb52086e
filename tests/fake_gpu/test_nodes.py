"""bench on several nodes, network namespaces, whose ranks are in one group of torch's own NCCL."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ncclcheck.measure.collectives import COLLECTIVES
from tests.facts.compiled import shared_library
from tests.fake_gpu.stack import ARTEFACTS, BENCH, FakeTorch, ranks_measuring
from tests.lab.launched import Told, flags, report_file, told
from tests.lab.namespaces import pids
from tests.lab.nodes import REPOSITORY, Lab
from tests.lab.process import Running

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
