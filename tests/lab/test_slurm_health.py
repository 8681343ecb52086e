"""--slurm-health under a real Slurm: six scripted histories on six nodes, and slurmd's own health check."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.examples.test_slurm import command, reason_of
from tests.lab.nodes import Lab, Node
from tests.lab.slurm import Slurm

pytestmark = [pytest.mark.lab, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / "examples"
SWAP = "disk swap on Monday"
# good, bad, or a run whose facts do not come in time; and how the node stands in the end
HISTORIES = {
    "node1": ("ggg", "idle none"),
    "node2": ("bb", "drained ncclcheck node: 1 error: path-missing on node2"),
    "node3": ("bggb", "idle none"),
    "node4": ("bbggg", f"drained {SWAP}"),
    "node5": ("btt", "idle none"),
    "node6": ("bbtggg", "idle none"),
}


class Fleet:
    """The nodes of a cluster with the folder that each of them has to have. State: these folders, and what was run."""

    def __init__(self, cluster: Slurm, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder

    def data(self, node: Node) -> Path:
        return self.folder / f"data-{node.name}"

    def check(self, node: Node, letter: str) -> int:
        if letter == "b":
            shutil.rmtree(self.data(node), ignore_errors=True)
        else:
            self.data(node).mkdir(exist_ok=True)
        words = [
            "node",
            "--quiet",
            "--slurm-health",
            "--max-drained",
            "50",
            "--state-dir",
            str(self.folder / "state"),
        ]
        words += ["--select", "path-missing", "--data", str(self.data(node)), "--timeout", "50"]
        if letter == "t":
            words[-1] = "0.01"  # no child process starts so fast
        env = {**self.cluster.env, "SLURMD_NODENAME": node.name}
        done = node.run([sys.executable, "-m", "ncclcheck", *words], env, timeout_s=100)
        assert done.returncode == {"g": 0, "b": 1, "t": 3}[letter], done
        return done.returncode


@pytest.mark.further
def test_six_histories_drain_keep_and_resume(
    lab: Callable[..., Lab], slurm: Callable[..., Slurm], tmp_path: Path
) -> None:
    six = lab(6)
    cluster = slurm(six)
    fleet = Fleet(cluster, tmp_path)
    (tmp_path / "state").mkdir(mode=0o700)
    drain = ["scontrol", "update", "NodeName=node4", "State=DRAIN", f"Reason={SWAP}"]
    assert six["node4"].run(drain, cluster.env).returncode == 0

    def play(name: str) -> None:
        for letter in HISTORIES[name][0]:
            fleet.check(six[name], letter)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(play, HISTORIES))
    assert {name: reason_of(cluster, name) for name in HISTORIES} == {
        name: ending for name, (_, ending) in HISTORIES.items()
    }
    assert six.leftovers() == ()


@pytest.mark.further
def test_slurmd_runs_the_example_and_the_node_is_drained_and_resumed(
    lab: Callable[..., Lab], slurm: Callable[..., Slurm], tmp_path: Path
) -> None:
    one = lab(1)
    data = tmp_path / "data"
    data.mkdir()
    program = tmp_path / "healthcheck"
    shutil.copy(EXAMPLES / "slurm" / "healthcheck", program)
    options = f"--select path-missing --data {data} --state-dir {tmp_path}/state"
    cluster = slurm(
        one, f"HealthCheckProgram={program}", "HealthCheckInterval=5", "HealthCheckNodeState=IDLE"
    )
    settings = f"NCCLCHECK={command(tmp_path)}\nOPTIONS=({options})\nSLURM_CONF={cluster.env['SLURM_CONF']}\n"
    (tmp_path / "healthcheck.conf").write_text(settings)
    assert await_state(cluster, "idle none", tmp_path / "state" / "slurm-health-node1.json") == "idle none"
    data.rmdir()
    assert await_state(cluster, "drained ncclcheck node: 1 error: path-missing on node1")
    data.mkdir()
    assert await_state(cluster, "idle none")


def await_state(cluster: Slurm, expected: str, file: Path | None = None) -> str:
    """Return the node's state once it is the expected one, and once the health check has run, if a file says so."""
    deadline = time.monotonic() + 150
    while (state := reason_of(cluster, "node1")) != expected or (file is not None and not file.exists()):
        assert time.monotonic() < deadline, state
        time.sleep(0.5)
    return state
