"""torchrun: a worker is where it was put, and its store is used where there is one."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.torchrun import detect_torchrun
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
    "RANK": "9",
    "WORLD_SIZE": "16",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "8",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29400",
}


def torchrun(**changes: str) -> Launch:
    launch = detect_torchrun({**TORCHRUN, **changes})
    assert launch is not None
    return launch


def test_a_worker_is_where_torchrun_put_it() -> None:
    launch = torchrun()
    assert (launch.rank, launch.world_size, launch.local_rank, launch.local_world_size) == (9, 16, 1, 8)
    assert (launch.node_rank, launch.nnodes, launch.nproc_per_node) == (1, 2, 8)
    assert (launch.master_addr, launch.master_port) == ("node1", 29400)


@pytest.mark.parametrize(("value", "shared"), [("True", True), ("1", True), ("False", False), ("", False)])
def test_the_agents_store_is_used_only_where_there_is_one(value: str, shared: bool) -> None:
    assert torchrun(TORCHELASTIC_USE_AGENT_STORE=value).shared_store is shared


def test_a_restart_is_another_run_in_the_same_store() -> None:
    assert torchrun().job_id != torchrun(TORCHELASTIC_RESTART_COUNT="1").job_id


def test_leftovers_of_torchrun_without_a_rank_are_nothing() -> None:
    assert detect_torchrun({"TORCHELASTIC_RUN_ID": "none"}) is None
    assert detect_torchrun({"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "node1"}) is None


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"])
def test_a_value_that_is_no_number_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}='1.5'"):
        torchrun(**{name: "1.5"})
