"""The plain variables of torch (RANK, WORLD_SIZE, MASTER_ADDR), which several launchers and many scripts set."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch


def detect_environment(environ: Mapping[str, str]) -> Launch | None:
    """Return the place that RANK, WORLD_SIZE and MASTER_ADDR give this process, as `env://` of torch reads them.

    Without LOCAL_WORLD_SIZE it is not known which ranks share a node, so each rank counts as a node of its own.
    """
    if not all(environ.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")):
        return None
    rank, world_size = number(environ, "RANK") or 0, count(environ, "WORLD_SIZE")
    local_rank, local_world_size = number(environ, "LOCAL_RANK") or 0, count(environ, "LOCAL_WORLD_SIZE")
    node_rank = number(environ, "GROUP_RANK", "NODE_RANK")
    return Launch(
        source="environment",
        rank=rank,
        world_size=world_size,
        local_rank=local_rank if environ.get("LOCAL_WORLD_SIZE") else 0,
        local_world_size=local_world_size,
        node_rank=rank // local_world_size if node_rank is None else node_rank,
        nnodes=number(environ, "GROUP_WORLD_SIZE", "NNODES") or -(-world_size // local_world_size),
        master_addr=environ["MASTER_ADDR"],
        master_port=port(environ),
        nproc_per_node=local_world_size if "LOCAL_WORLD_SIZE" in environ else None,
    )


ENVIRONMENT = Launcher(
    name="environment",
    label="RANK and WORLD_SIZE",
    precedence=70,
    detect=detect_environment,
    may_be_stale=True,
    node_count_source="environment (WORLD_SIZE)",
    variables=(
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "NNODES",
    ),
    rank_variables=("RANK", "LOCAL_RANK"),
    task_count=TaskCount("WORLD_SIZE", "RANK"),
)  # fmt: skip
