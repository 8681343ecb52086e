"""The plain variables of torch (RANK, WORLD_SIZE, MASTER_ADDR), which several launchers and many scripts set."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.by_hosts import unplaced
from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
_NODE, _NODES = ("GROUP_RANK", "NODE_RANK"), ("GROUP_WORLD_SIZE", "NNODES")


def detect_environment(environ: Mapping[str, str]) -> Launch | None:
    """Return the place that RANK, WORLD_SIZE and MASTER_ADDR give this process, as `env://` of torch reads them.

    Without the number of nodes, or this node's, the processes are counted by host. Without LOCAL_RANK or
    LOCAL_WORLD_SIZE a process is the agent of its node, unless another of the same host joined before it.
    """
    if not all(environ.get(name) for name in _NEEDED):
        return None
    node_rank, nnodes = number(environ, *_NODE), number(environ, *_NODES)
    local_rank, is_sized = number(environ, "LOCAL_RANK"), bool(environ.get("LOCAL_WORLD_SIZE"))
    is_placed = node_rank is not None and bool(nnodes)
    launch = Launch(
        source="environment",
        rank=number(environ, "RANK") or 0,
        world_size=count(environ, "WORLD_SIZE"),
        local_rank=(local_rank or 0) if is_sized or is_placed else 0,
        local_world_size=max(count(environ, "LOCAL_WORLD_SIZE"), (local_rank or 0) + 1 if is_placed else 1),
        node_rank=node_rank or 0 if is_placed else 0,
        nnodes=nnodes or 1 if is_placed else 1,
        master_addr=environ["MASTER_ADDR"],
        master_port=port(environ),
        nproc_per_node=count(environ, "LOCAL_WORLD_SIZE") if is_sized else None,
    )
    if is_placed:
        return launch
    return unplaced(launch, "local-rank" if is_sized and local_rank is not None else "rank")


def refuse_half_given(environ: Mapping[str, str]) -> None:
    """Raise UsageError where the variables say that this is one process of several, and one of them is missing.

    torch needs all three. A RANK of 0 alone says nothing, and a WORLD_SIZE of 1 is a job of this process.
    """
    there = [name for name in _NEEDED if environ.get(name)]
    is_one_of_several = (
        (number(environ, "RANK") or 0) > 0
        or (number(environ, "WORLD_SIZE") or 1) > 1
        or ("RANK" in there and "MASTER_ADDR" in there and "WORLD_SIZE" not in there)
    )
    missing = [name for name in _NEEDED if name not in there]
    if is_one_of_several and missing:
        settings = " and ".join(f"{name}={environ[name]}" for name in there)
        raise UsageError(
            f"{settings} in the environment: this is one process of a job of several, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set: set what is missing, as the job needs it too, or check "
            "only this node with --nnodes 1"
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
