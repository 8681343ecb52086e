"""torchrun, and the plain torch variables (RANK, WORLD_SIZE, MASTER_ADDR) that other launchers set too."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch

DEFAULT_PORT = 29500  # torch/distributed/run.py: the default of --master-port


def detect_torchrun(environ: Mapping[str, str]) -> Launch | None:
    """The place torchrun gave this process (`torch/distributed/elastic/agent/server/local_elastic_agent.py`)."""
    if "TORCHELASTIC_RUN_ID" not in environ or "RANK" not in environ:
        return None
    restart = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    local_world_size = count(environ, "LOCAL_WORLD_SIZE")
    return Launch(
        source="torchrun",
        rank=number(environ, "RANK") or 0,
        world_size=count(environ, "WORLD_SIZE"),
        local_rank=number(environ, "LOCAL_RANK") or 0,
        local_world_size=local_world_size,
        node_rank=number(environ, "GROUP_RANK") or 0,
        nnodes=count(environ, "GROUP_WORLD_SIZE"),
        master_addr=environ.get("MASTER_ADDR"),
        master_port=port(environ, DEFAULT_PORT),
        nproc_per_node=local_world_size,
        job_id=f"torchrun {environ['TORCHELASTIC_RUN_ID']}.{restart}",
        shared_store=environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() in {"true", "1"},
    )


def detect_environment(environ: Mapping[str, str]) -> Launch | None:
    """The place that RANK, WORLD_SIZE and MASTER_ADDR give this process, as `env://` of torch reads them.

    Without LOCAL_WORLD_SIZE nobody says which ranks share a node, so each rank counts as a node of its own.
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
        master_port=port(environ, DEFAULT_PORT),
        nproc_per_node=local_world_size if "LOCAL_WORLD_SIZE" in environ else None,
    )
