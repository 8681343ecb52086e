"""The plain variables of torch, which any script may have set."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.plain_variables import detect_environment
from ncclcheck.launch.reading import DEFAULT_PORT
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

PLAIN = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "node1"}


def plain(**changes: str) -> Launch:
    launch = detect_environment({**PLAIN, **changes})
    assert launch is not None
    return launch


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("value", [None, ""])
def test_plain_variables_count_only_together(name: str, value: str | None) -> None:
    environ = {key: text for key, text in {**PLAIN, name: value}.items() if text is not None}
    assert detect_environment(environ) is None


def test_plain_ranks_tell_no_node() -> None:
    launch = plain()
    assert (launch.told, launch.node_rank, launch.nnodes, launch.nproc_per_node) == ("rank", 3, 4, None)
    assert (launch.master_port, launch.shared_store) == (DEFAULT_PORT, False)
    launch = plain(LOCAL_WORLD_SIZE="2", LOCAL_RANK="1")
    assert (launch.told, launch.local_rank, launch.nproc_per_node) == ("local-rank", 1, 2)
    assert plain(LOCAL_WORLD_SIZE="4", LOCAL_RANK="3").nnodes == 1


def test_a_local_rank_without_a_local_size_places_nobody() -> None:
    assert (plain(LOCAL_RANK="1").local_rank, plain(LOCAL_RANK="1").told) == (0, "rank")


def test_said_nodes_win_over_counted_ones() -> None:
    launch = plain(LOCAL_WORLD_SIZE="3", NODE_RANK="0", NNODES="3")
    assert (launch.told, launch.node_rank, launch.nnodes) == ("place", 0, 3)
    launch = plain(LOCAL_RANK="1", NODE_RANK="1", NNODES="2")
    assert (launch.told, launch.node_rank, launch.local_rank) == ("place", 1, 1)
    assert plain(LOCAL_WORLD_SIZE="3", LOCAL_RANK="0", NODE_RANK="1").told == "local-rank"


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"])
def test_a_value_that_is_no_number_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}='1.5'"):
        plain(**{name: "1.5"})
