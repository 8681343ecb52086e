"""Environments that number the nodes and leave the rest to the job: Kubernetes Indexed Jobs, Lightning, Azure ML."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.reading import number, port
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

# Kubernetes: "Indexed Job" (docs/concepts/workloads/controllers/job), also of every replicated job of a JobSet.
# Lightning: lightning/fabric/plugins/environments/lightning.py (NODE_RANK, else GROUP_RANK). Azure ML sets NODE_RANK.
_INDEX = ("NODE_RANK", "GROUP_RANK", "JOB_COMPLETION_INDEX")
_COUNT = ("NNODES", "NUM_NODES", "LT_NUM_NODES")  # LT_NUM_NODES: lightning/fabric/cli.py


def detect_node_index(environ: Mapping[str, str], nnodes: int | None) -> Launch | None:
    """Return this node's place where the environment has only its number and MASTER_ADDR.

    `nnodes`: the number of nodes that the user gave. Without MASTER_ADDR, or a number of nodes, the index may count
    anything: the pods of an Indexed Job need not know each other, so its index gives None. Raises UsageError for a
    NODE_RANK above 0, which would wait for node 0.
    """
    index = number(environ, *_INDEX)
    master_addr = environ.get("MASTER_ADDR")
    if index is None or not master_addr:
        return None
    count = nnodes or number(environ, *_COUNT)
    if not count:
        if index == 0 or not environ.get("NODE_RANK"):
            return None
        raise UsageError(
            f"NODE_RANK={index} says that this is one of several nodes, and nothing says of how many: give --nnodes"
        )
    if index >= count:
        name = next(name for name in _INDEX if environ.get(name))
        raise UsageError(f"{name}={index} is impossible in a job of {count} nodes: expected 0 to {count - 1}")
    return Launch(
        source="node-index",
        rank=index,
        world_size=count,
        local_rank=0,
        local_world_size=1,
        node_rank=index,
        nnodes=count,
        master_addr=master_addr,
        master_port=port(environ),
        nproc_per_node=number(environ, "NPROC_PER_NODE"),
    )


NODE_INDEX = Launcher(
    name="node-index",
    label="a node number in the environment",
    precedence=80,
    may_be_stale=True,
    node_count_source="environment (NNODES)",
    variables=(*_INDEX, *_COUNT, "NPROC_PER_NODE"),
)
