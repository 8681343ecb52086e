"""The launchers of the lab launch: a trivial command sees its rank on every node, and nothing stays behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import namespaces
from tests.lab.launchers import with_flags, with_torchrun
from tests.lab.nodes import Lab
from tests.lab.openmpi import OpenMpi
from tests.lab.slurm import Slurm

pytestmark = pytest.mark.lab
BuildLab = Callable[..., Lab]

_WHO = "import os, socket; print(socket.gethostname(), *(os.environ.get(name) for name in {names!r}))"


def who(*names: str) -> str:
    return _WHO.replace("{names!r}", repr(names))


def test_flags_are_filled_in_for_every_node(lab: BuildLab) -> None:
    four = lab(4)
    done = with_flags(four, ["echo", "{node_rank}/{nnodes}", "{node}", "{address}", "{master_addr}"])
    assert done["node3"].stdout == "2/4 node3 10.78.0.3 10.78.0.1\n"
    assert set(with_flags(four, ["true"], nodes=four.nodes[1:])) == {"node2", "node3", "node4"}


@pytest.mark.further
@pytest.mark.slow
def test_torchrun_starts_its_workers_on_every_node(lab: BuildLab, tmp_path: Path) -> None:
    four = lab(4)
    script = tmp_path / "who.py"
    script.write_text(who("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_USE_AGENT_STORE"))
    done = with_torchrun(four, [str(script)], nproc_per_node=2)
    lines = {line for finished in done.values() for line in finished.stdout.splitlines()}
    assert [finished.returncode for finished in done.values()] == [0] * 4, [
        str(finished) for finished in done.values()
    ]
    assert lines == {f"node{rank // 2 + 1} {rank} {rank % 2} 8 10.78.0.1 True" for rank in range(8)}
    assert four.leftovers() == ()


@pytest.mark.slow
def test_srun_starts_a_task_on_every_node(lab: BuildLab, slurm: Callable[[Lab], Slurm]) -> None:
    four = lab(4, docker=True)
    cluster = slurm(four)
    code = who("SLURM_PROCID", "SLURM_NODEID", "SLURM_NODELIST", "SLURM_LAUNCH_NODE_IPADDR")
    done = cluster.srun([sys.executable, "-c", code])
    assert done.returncode == 0, done
    assert set(done.stdout.splitlines()) == {f"node{n + 1} {n} {n} node[1-4] 10.78.0.1" for n in range(4)}
    assert cluster.srun(["sh", "-c", "exit $((SLURM_PROCID))"]).returncode == 3
    assert "7: node4" in cluster.srun(["hostname"], options=["-n8", "--label"]).stdout
    assert four.leftovers() == ()


@pytest.mark.further
@pytest.mark.slow
def test_slurm_can_be_started_again_after_it_was_torn_down(
    lab: BuildLab, slurm: Callable[[Lab], Slurm]
) -> None:
    one = lab(1)
    for _ in range(2):
        with Slurm(one) as cluster:
            assert cluster.srun(["hostname"]).stdout == "node1\n"
        assert one.leftovers() == ()
        assert namespaces.pids(one.switch.namespace) == ()
    assert slurm(one).srun(["hostname"]).returncode == 0


@pytest.mark.further
@pytest.mark.slow
def test_mpirun_starts_a_rank_on_every_node_over_ssh(
    lab: BuildLab, openmpi: Callable[[Lab], OpenMpi]
) -> None:
    four = lab(4, docker=True)
    cluster = openmpi(four)
    code = who("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "COLOUR")
    done = cluster.mpirun([sys.executable, "-c", code], {"COLOUR": "green"}, ranks_per_node=2)
    assert done.returncode == 0, done
    assert set(done.stdout.splitlines()) == {f"node{n // 2 + 1} {n} 8 {n % 2} green" for n in range(8)}
    assert cluster.mpirun(["sh", "-c", "exit 5"]).returncode == 5
    assert four.leftovers() == ()
