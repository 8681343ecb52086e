"""PET_* of Kubeflow, which describe the job to a torchrun that has yet to start."""

from __future__ import annotations

from ncclcheck.launch.launchers.kubeflow import line_in_environment


def test_kubeflow_trainer() -> None:
    environ = {
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "4",
        "PET_MASTER_ADDR": "job-node-0-0.job",
        "PET_MASTER_PORT": "29400",
    }
    line = line_in_environment(environ)
    assert line is not None
    assert (line.nnodes, line.node_rank, line.nproc_per_node) == (2, 1, 4)
    assert (line.master_addr, line.master_port) == ("job-node-0-0.job", 29400)


def test_a_pytorchjob_gives_the_address_without_the_prefix() -> None:
    environ = {"PET_NNODES": "2", "PET_NODE_RANK": "1", "MASTER_ADDR": "j-master-0", "MASTER_PORT": "23456"}
    line = line_in_environment(environ)
    assert line is not None
    assert (line.master_addr, line.master_port) == ("j-master-0", 23456)


def test_an_elastic_pytorchjob_meets_by_c10d() -> None:
    environ = {"PET_NNODES": "1:4", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "j-worker-0:23456"}
    line = line_in_environment(environ)
    assert line is not None
    assert (line.rendezvous, line.min_nodes, line.nnodes) == ("c10d", 1, 4)
    assert line_in_environment({}) is None
