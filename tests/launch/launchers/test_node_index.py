"""Environments that number the nodes: Indexed Jobs, Lightning and Azure ML."""

from __future__ import annotations

import pytest

from ncclcheck.launch.launchers.node_index import detect_node_index
from ncclcheck.model.errors import UsageError

JOB = {"JOB_COMPLETION_INDEX": "2", "MASTER_ADDR": "train-0.headless", "MASTER_PORT": "1234"}


def test_an_indexed_job_with_the_users_count() -> None:
    launch = detect_node_index(JOB, 4)
    assert launch is not None
    assert (launch.source, launch.node_rank, launch.nnodes) == ("node-index", 2, 4)
    assert (launch.master_addr, launch.master_port) == ("train-0.headless", 1234)


@pytest.mark.parametrize("name", ["NNODES", "NUM_NODES", "LT_NUM_NODES"])
def test_or_a_count_in_the_environment(name: str) -> None:
    launch = detect_node_index({**JOB, name: "3"}, None)
    assert launch is not None
    assert launch.nnodes == 3


def test_lightning() -> None:
    environ = {"NODE_RANK": "1", "MASTER_ADDR": "head", "LT_NUM_NODES": "2", "NPROC_PER_NODE": "8"}
    launch = detect_node_index(environ, None)
    assert launch is not None
    assert (launch.node_rank, launch.nnodes, launch.nproc_per_node) == (1, 2, 8)


@pytest.mark.parametrize(
    "environ", [{}, {"JOB_COMPLETION_INDEX": "3"}, JOB, {"NODE_RANK": "0", "MASTER_ADDR": "a"}]
)
def test_pods_that_need_not_know_each_other_are_one_node_each(environ: dict[str, str]) -> None:
    assert detect_node_index(environ, None) is None


def test_a_node_rank_above_0_without_a_count_is_refused() -> None:
    with pytest.raises(UsageError, match="NODE_RANK=1 says that this is one of several nodes"):
        detect_node_index({"NODE_RANK": "1", "MASTER_ADDR": "a"}, None)


def test_an_index_beyond_the_count_is_refused() -> None:
    with pytest.raises(UsageError, match="JOB_COMPLETION_INDEX=2 is impossible in a job of 2 nodes"):
        detect_node_index(JOB, 2)
