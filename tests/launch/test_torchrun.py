"""torchrun, and the plain variables of torch that anybody may have set."""

from __future__ import annotations

import pytest

from ncclcheck.launch.torchrun import DEFAULT_PORT, detect_environment, detect_torchrun
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
PLAIN = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "node1"}


def torchrun(**changes: str) -> Launch:
    launch = detect_torchrun({**TORCHRUN, **changes})
    assert launch is not None
    return launch


def plain(**changes: str) -> Launch:
    launch = detect_environment({**PLAIN, **changes})
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
    assert detect_torchrun(PLAIN) is None


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("value", [None, ""])
def test_plain_variables_count_only_together(name: str, value: str | None) -> None:
    environ = {key: text for key, text in {**PLAIN, name: value}.items() if text is not None}
    assert detect_environment(environ) is None


def test_plain_ranks_are_nodes_unless_something_says_how_many_share_one() -> None:
    launch = plain()
    assert (launch.node_rank, launch.nnodes, launch.nproc_per_node) == (3, 4, None)
    assert (launch.master_port, launch.shared_store) == (DEFAULT_PORT, False)
    launch = plain(LOCAL_WORLD_SIZE="2", LOCAL_RANK="1")
    assert (launch.node_rank, launch.nnodes, launch.nproc_per_node) == (1, 2, 2)


def test_a_local_rank_without_a_local_size_places_nobody() -> None:
    assert (plain(LOCAL_RANK="1").local_rank, plain(LOCAL_RANK="1").node_rank) == (0, 3)


def test_said_nodes_win_over_counted_ones() -> None:
    launch = plain(LOCAL_WORLD_SIZE="3", NODE_RANK="0", NNODES="3")
    assert (launch.node_rank, launch.nnodes) == (0, 3)
    launch = plain(LOCAL_WORLD_SIZE="3", GROUP_RANK="1", NODE_RANK="0")
    assert (launch.node_rank, launch.nnodes) == (1, 2)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"])
def test_a_value_that_is_no_number_is_refused_by_name(name: str) -> None:
    for read in (torchrun, plain):
        with pytest.raises(UsageError, match=f"{name}='1.5'"):
            read(**{name: "1.5"})
