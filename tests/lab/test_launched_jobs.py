"""The same four healthy nodes under the real launchers, and what one rank per core adds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.launched import flags
from tests.lab.launchers import with_torchrun
from tests.lab.nodes import PYTHON, Lab
from tests.lab.openmpi import OpenMpi
from tests.lab.slurm import Slurm

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def healthy(path: Path, source: str, nodes: int) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text())
    assert report["verdict"]["exit_code"] == 0, report["verdict"]
    assert [node["facts"]["launch"]["source"] for node in report["nodes"]] == [source] * nodes
    assert [node["node_rank"] for node in report["nodes"]] == list(range(nodes))
    reached = [probe for probe in report["probes"] if probe["kind"] == "tcp" and probe["outcome"] == "ok"]
    assert len([one for one in reached if one["listener"] == "ncclcheck"]) == nodes * (nodes - 1)
    return report


@pytest.mark.further
def test_torchrun_joins_the_launchers_store(lab: LabOf, tmp_path: Path) -> None:
    four = lab(4)
    ended = with_torchrun(four, ["-m", "ncclcheck", "preflight", "--output", str(tmp_path / "{node}.json")])
    assert [finished.returncode for finished in ended.values()] == [0] * 4, [
        str(finished) for finished in ended.values()
    ]
    report = healthy(tmp_path / "node1.json", "torchrun", 4)
    assert report["nodes"][0]["facts"]["launch"]["shared_store"]
    assert four.leftovers() == ()


@pytest.mark.further
def test_torchrun_with_two_ranks_per_node_reports_once_and_names_a_ranks_own_environment(
    lab: LabOf, tmp_path: Path
) -> None:
    two = lab(2)
    script = tmp_path / "odd.py"
    script.write_text(
        "import os, sys\n"
        "if os.environ['RANK'] == '3': os.environ['NCCL_ALGO'] = 'Tree'\n"
        "sys.argv = ['ncclcheck', 'preflight', '--output', sys.argv[1]]\n"
        "from ncclcheck.cli.main import main; main()\n"
    )
    ended = with_torchrun(two, [str(script), str(tmp_path / "{node}.json")], nproc_per_node=2)
    report = json.loads((tmp_path / "node1.json").read_text())
    assert "".join(finished.stdout for finished in ended.values()).count("\nexit ") == 1
    (finding,) = [one for one in report["findings"] if one["slug"] == "env-differs"]
    assert finding["hosts"] == ["node2"]
    assert "3" in finding["summary"] + str(finding["evidence"])


@pytest.mark.further
def test_slurm(lab: LabOf, slurm: Callable[[Lab], Slurm], tmp_path: Path) -> None:
    four = lab(4)
    cluster = slurm(four)
    ended = cluster.srun([PYTHON, "-m", "ncclcheck", "preflight", "--output", str(tmp_path / "report.json")])
    assert ended.returncode == 0, str(ended)
    assert ended.stdout.count("exit 0") == 1
    report = healthy(tmp_path / "report.json", "slurm", 4)
    assert report["nodes"][0]["facts"]["launch"]["hosts"] == ["node1", "node2", "node3", "node4"]


@pytest.mark.further
def test_mpirun(lab: LabOf, openmpi: Callable[[Lab], OpenMpi], tmp_path: Path) -> None:
    four = lab(4)
    output = str(tmp_path / "report.json")
    ended = openmpi(four).mpirun(
        [PYTHON, "-m", "ncclcheck", "preflight", "--output", output],
        {"PYTHONPATH": four.nodes[0].environment()["PYTHONPATH"]},
    )
    assert ended.returncode == 0, str(ended)
    assert ended.stdout.count("exit 0") == 1
    healthy(tmp_path / "report.json", "openmpi", 4)


def test_mpirun_with_uneven_slots_starts_the_command_once_for_every_rank(
    lab: LabOf, openmpi: Callable[[Lab], OpenMpi], tmp_path: Path
) -> None:
    three = lab(3)
    output, code = (
        tmp_path / "report.json",
        "import os; print(os.environ['OMPI_COMM_WORLD_RANK'], os.uname()[1])",
    )
    words = [PYTHON, "-m", "ncclcheck", "preflight", "--output", str(output), "--", PYTHON, "-c", code]
    environment = {"PYTHONPATH": three.nodes[0].environment()["PYTHONPATH"]}
    ended = openmpi(three).mpirun(words, environment, slots=[3, 1, 2])
    assert ended.returncode == 0, str(ended)
    assert ended.stdout.count("exit 0") == 1
    started = sorted(
        line for line in ended.stdout.splitlines() if line[:2] in {f"{rank} " for rank in range(6)}
    )
    assert started == ["0 node1", "1 node1", "2 node1", "3 node2", "4 node3", "5 node3"]
    report = healthy(output, "openmpi", 3)
    launches = [node["facts"]["launch"] for node in report["nodes"]]
    assert [(launch["nnodes"], launch["local_world_size"]) for launch in launches] == [(3, 3), (3, 1), (3, 2)]
    assert three.leftovers() == ()


@pytest.mark.further
def test_flags_that_contradict_mpirun_are_a_finding(
    lab: LabOf, openmpi: Callable[[Lab], OpenMpi], tmp_path: Path
) -> None:
    two = lab(2)
    output = str(tmp_path / "report.json")
    ended = openmpi(two).mpirun(
        [PYTHON, "-m", "ncclcheck", "preflight", "--nnodes", "3", "--join-timeout", "8", "--output", output],
        {"PYTHONPATH": two.nodes[0].environment()["PYTHONPATH"]},
    )
    assert ended.returncode == 1, str(ended)
    report = json.loads((tmp_path / "report.json").read_text())
    assert "world-size-mismatch" in {finding["slug"] for finding in report["findings"]}


def test_nobody_launched_it_is_one_node(lab: LabOf) -> None:
    one = lab(1).nodes[0]
    ended = one.run([PYTHON, "-m", "ncclcheck", "preflight"])
    assert ended.returncode == 0, str(ended)
    assert "1 node" in ended.stdout


def test_a_rank_that_cannot_be_is_exit_2_with_one_sentence(lab: LabOf) -> None:
    two = lab(2)
    words = [*flags(two, two["node2"]), "--node-rank", "2"]
    ended = two["node2"].run([PYTHON, "-m", "ncclcheck", "preflight", *words])
    assert ended.returncode == 2
    assert "0 to 1" in ended.stderr
    assert "Traceback" not in ended.stderr
