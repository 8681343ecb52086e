"""The files for Slurm, under a real Slurm: the prolog drains the node that is unfit, the batch script checks first."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.nodes import Lab
from tests.lab.slurm import Slurm

pytestmark = [pytest.mark.lab, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / "examples"


def command(folder: Path) -> Path:
    """`ncclcheck` of this environment under a path of its own, as a prolog calls it."""
    script = folder / "ncclcheck"
    root = Path(__file__).parents[2]
    script.write_text(f'#!/bin/sh\ncd {root} && exec {sys.executable} -m ncclcheck "$@"\n')
    script.chmod(0o755)
    return script


def reason_of(cluster: Slurm, node: str) -> str:
    """The state and the reason; without the mark `*` of a node whose slurmd is late for a moment (sinfo(1))."""
    shown = cluster.lab.nodes[0].run(
        ["sinfo", "--noheader", f"--nodes={node}", "--format=%T %E"], cluster.env
    )
    state, _, reason = shown.stdout.strip().partition(" ")
    return f"{state.rstrip('*')} {reason}"


def prolog_in(folder: Path, options: str, ncclcheck: Path) -> Path:
    prolog = folder / "prolog"
    shutil.copy(EXAMPLES / "slurm" / "prolog", prolog)
    (folder / "prolog.conf").write_text(f"NCCLCHECK={ncclcheck}\nOPTIONS=({options})\n")
    return prolog


def test_the_prolog_drains_the_node_that_is_unfit_and_says_why(
    lab: Callable[..., Lab], slurm: Callable[..., Slurm], tmp_path: Path
) -> None:
    two = lab(2)
    (tmp_path / "data-node1").mkdir()
    prolog = prolog_in(tmp_path, f'--data "{tmp_path}/data-$(hostname)"', command(tmp_path))
    cluster = slurm(two, f"Prolog={prolog}", "PrologFlags=Alloc", "SchedulerParameters=nohold_on_prolog_fail")
    healthy = two.nodes[0].run(["srun", "--nodelist=node1", "hostname"], cluster.env, timeout_s=60)
    assert healthy.stdout == "node1\n", healthy
    unfit = two.nodes[0].run(["srun", "--nodelist=node2", "hostname"], cluster.env, timeout_s=60)
    assert "node2\n" not in unfit.stdout, unfit
    state = reason_of(cluster, "node2")
    assert state.startswith("drain"), state
    assert "ncclcheck: node problem: 1 error: path-missing on node2" in state
    assert reason_of(cluster, "node1").startswith(("idle", "allocated", "mixed"))


def test_a_prolog_that_is_itself_misconfigured_drains_nothing(
    lab: Callable[..., Lab], slurm: Callable[..., Slurm], tmp_path: Path
) -> None:
    one = lab(1)
    cluster = slurm(
        one, f"Prolog={prolog_in(tmp_path, '--no-such-option', command(tmp_path))}", "PrologFlags=Alloc"
    )
    assert cluster.srun(["hostname"], timeout_s=60).stdout == "node1\n"
    assert not reason_of(cluster, "node1").startswith("drain")
