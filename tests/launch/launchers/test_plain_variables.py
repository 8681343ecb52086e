"""The plain variables of torch, which any script may have set."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.plain_variables import detect_environment, refuse_half_given
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


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        ({"RANK": "0", "MASTER_ADDR": "a"}, "WORLD_SIZE is not set"),
        ({"RANK": "1"}, "WORLD_SIZE and MASTER_ADDR are not set"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_ADDR is not set"),
        ({"WORLD_SIZE": "2", "RANK": "", "MASTER_ADDR": "a"}, "RANK is not set"),
    ],
)
def test_a_process_of_several_with_half_of_its_variables_is_refused(
    environ: dict[str, str], missing: str
) -> None:
    with pytest.raises(UsageError, match=missing):
        refuse_half_given(environ)


@pytest.mark.parametrize("environ", [{}, {"RANK": "0"}, {"WORLD_SIZE": "1"}, {"MASTER_ADDR": "a"}, PLAIN])
def test_variables_that_tell_all_or_nothing_of_other_processes_are_accepted(environ: dict[str, str]) -> None:
    refuse_half_given(environ)
