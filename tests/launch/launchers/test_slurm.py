"""A task of a Slurm step, with the variables that srun sets, and with fewer and odder ones."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.slurm import FIRST_PORT, PORTS, detect_slurm
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

STEP = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_ID": "1",
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_NTASKS": "16",  # of the allocation: the step has fewer
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_NNODES": "8",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_NODELIST": "gpu[01-08]",
}


def task(**changes: str | None) -> Launch:
    environ = {name: value for name, value in {**STEP, **changes}.items() if value is not None}
    launch = detect_slurm(environ)
    assert launch is not None
    return launch


def test_the_step_counts_not_the_allocation_around_it() -> None:
    launch = task()
    assert (launch.rank, launch.world_size) == (2, 3)
    assert (launch.node_rank, launch.nnodes, launch.hosts) == (1, 2, ("gpu07", "gpu08"))
    assert launch.job_id == "slurm 4711.1"
    assert launch.nproc_per_node is None  # the ranks of the job are not what srun started here
    assert not launch.shared_store


def test_nodes_may_have_different_numbers_of_tasks() -> None:
    assert task().local_world_size == 1
    assert task(SLURM_NODEID="0", SLURM_PROCID="1", SLURM_LOCALID="1").local_world_size == 2


def test_the_first_node_is_the_first_of_the_list_not_of_the_alphabet() -> None:
    """With `--distribution=arbitrary` node 0 is whatever the user named first."""
    launch = task(SLURM_STEP_NODELIST="login1,gpu[9,3]")
    assert launch.hosts == ("login1", "gpu9", "gpu3")
    assert launch.master_addr == "login1"


def test_the_users_own_master_wins() -> None:
    launch = task(MASTER_ADDR="10.1.1.1", MASTER_PORT="1234")
    assert (launch.master_addr, launch.master_port) == ("10.1.1.1", 1234)


def test_two_steps_of_a_job_do_not_share_a_port() -> None:
    first, second = task(), task(SLURM_STEP_ID="2")
    assert first.master_port != second.master_port
    assert {FIRST_PORT <= launch.master_port < FIRST_PORT + PORTS for launch in (first, second)} == {True}


@pytest.mark.parametrize("name", ["SLURM_PROCID", "SLURM_STEP_ID"])
@pytest.mark.parametrize("value", [None, ""])
def test_outside_a_step_there_is_no_task(name: str, value: str | None) -> None:
    assert (
        detect_slurm({key: text for key, text in {**STEP, name: value}.items() if text is not None}) is None
    )


def test_the_names_of_older_versions_do() -> None:
    launch = task(SLURM_STEP_NUM_TASKS=None, SLURM_NTASKS=None, SLURM_NPROCS="3", SLURM_STEP_NUM_NODES=None)
    assert (launch.world_size, launch.nnodes) == (3, 8)
    launch = task(SLURM_STEP_NODELIST=None, SLURM_STEP_TASKS_PER_NODE=None, SLURM_TASKS_PER_NODE="2(x8)")
    assert (len(launch.hosts), launch.local_world_size) == (8, 2)


@pytest.mark.parametrize("nodes", ["gpu[7-", "", None])
def test_a_node_list_that_cannot_be_read_names_nobody(nodes: str | None) -> None:
    launch = task(SLURM_STEP_NODELIST=nodes, SLURM_NODELIST=None)
    assert (launch.hosts, launch.master_addr) == ((), None)


@pytest.mark.parametrize("job", ["", "4711_2", "²"])
def test_a_job_number_that_is_none_gives_the_first_port(job: str) -> None:
    assert task(SLURM_JOB_ID=job).master_port == FIRST_PORT


def test_a_rank_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="SLURM_PROCID='two'"):
        task(SLURM_PROCID="two")
