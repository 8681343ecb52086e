"""--topology of matrix, and the file of Slurm on this node."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.cli.benchmarks import site_file
from ncclcheck.cli.benchmarks.site_file import site_topology
from ncclcheck.cli.request import run_options
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing

CONF = "SwitchName=s1 Nodes=n[1-2]\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Slurm's files on this node."""
    monkeypatch.setattr(site_file, "FOLDERS", (str(tmp_path / "absent"), str(tmp_path)))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    return tmp_path


@pytest.mark.usefixtures("slurm")
def test_a_file_that_was_named_is_demanded(tmp_path: Path) -> None:
    file = tmp_path / "mine.conf"
    file.write_text(CONF)
    found = run_options("matrix", {"topology": str(file)}).demands.topology
    assert not isinstance(found, Missing)
    assert found.switches[0].hosts == ("n1", "n2")
    file.write_text("- topology: [\n")
    with pytest.raises(UsageError, match=r"--topology .*mine.conf: line 2: not YAML"):
        run_options("matrix", {"topology": str(file)})
    with pytest.raises(UsageError, match="there is no such file"):
        run_options("matrix", {"topology": str(tmp_path / "nothing")})


def test_the_file_of_slurm_is_found_and_a_damaged_one_is_no_error(slurm: Path) -> None:
    assert site_topology("matrix", {}, {}) == site_file.NOT_GIVEN
    (slurm / "topology.conf").write_text(CONF)
    found = site_topology("matrix", {}, {})
    assert not isinstance(found, Missing)
    assert found.source == str(slurm / "topology.conf")
    (slurm / "topology.yaml").write_text("a: [")
    damaged = site_topology("matrix", {}, {})
    assert isinstance(damaged, Missing)
    assert (damaged.missing, "topology.yaml: line 1: not YAML" in damaged.detail) == ("error", True)


def test_neither_a_replay_nor_another_command_looks_for_one(slurm: Path) -> None:
    (slurm / "topology.conf").write_text(CONF)
    assert site_topology("matrix", {"from_": "run.json"}, {}) == site_file.NOT_GIVEN
    assert site_topology("preflight", {}, {}) == site_file.NOT_GIVEN


@pytest.mark.usefixtures("slurm")
def test_only_node_0_needs_the_file(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nothing")
    of_node = {"topology": nowhere, "nnodes": 2, "master_addr": "node1"}
    found = run_options("matrix", {**of_node, "node_rank": 1}).demands.topology
    assert found == site_file.NOT_GIVEN
    with pytest.raises(UsageError, match="there is no such file"):
        run_options("matrix", {**of_node, "node_rank": 0})
    task = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1", "SLURM_PROCID": "3", "SLURM_NODEID": "3", "SLURM_LOCALID": "0",
            "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "4", "SLURM_STEP_TASKS_PER_NODE": "1(x4)",
            "SLURM_STEP_NODELIST": "gpu[1-4]"}  # fmt: skip
    assert site_topology("matrix", {"topology": nowhere}, task, LaunchFlags()) == site_file.NOT_GIVEN


@pytest.mark.usefixtures("slurm")
def test_the_folder_of_slurm_conf_comes_first_and_a_dead_mount_costs_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "topology.conf").write_text(CONF)
    found = site_topology("matrix", {}, {"SLURM_CONF": str(own / "slurm.conf")})
    assert not isinstance(found, Missing)
    assert found.source == str(own / "topology.conf")
    (own / "topology.conf").unlink()
    os.mkfifo(own / "topology.conf")  # no regular file is not opened
    assert site_topology("matrix", {}, {"SLURM_CONF": str(own / "slurm.conf")}) == site_file.NOT_GIVEN
    monkeypatch.setattr(site_file, "USER_FILE_S", 0.05)
    monkeypatch.setattr(site_file, "_find", lambda _folders: time.sleep(30))
    late = site_topology("matrix", {}, {})
    assert isinstance(late, Missing)
    assert late.missing == "timeout"
