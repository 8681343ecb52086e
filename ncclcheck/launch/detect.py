"""Who am I: the launchers asked in turn, the user's flags on top, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.mpi import detect_openmpi, detect_pmi
from ncclcheck.launch.reading import port
from ncclcheck.launch.slurm import detect_slurm
from ncclcheck.launch.torchrun import DEFAULT_PORT, detect_environment, detect_torchrun
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Contradiction, Launch

_NODE_COUNT_NAME = {
    "torchrun": "torchrun (GROUP_WORLD_SIZE)",
    "slurm": "Slurm (SLURM_STEP_NUM_NODES)",
    "openmpi": "mpirun (OMPI_COMM_WORLD_SIZE / OMPI_COMM_WORLD_LOCAL_SIZE)",
    "pmi": "PMI (PMI_SIZE)",
    "environment": "environment (WORLD_SIZE)",
}


def detect(environ: Mapping[str, str], flags: LaunchFlags) -> Launch:
    """This process's place in the job.

    Flags win over launchers; torchrun over the launcher that started it; a real launcher over RANK and WORLD_SIZE that
    may be left over in the environment. Raises UsageError for a place that cannot be (rank 4 of 4) or is half given.
    """
    found = [
        launch
        for one in (detect_torchrun, detect_slurm, detect_openmpi, detect_pmi, detect_environment)
        if (launch := one(environ)) is not None
    ]
    base = found[0] if found else None
    launch = _with_flags(base, flags, environ)
    _refuse_impossible(launch)
    return replace(launch, contradictions=tuple(_contradictions(found, flags)))


def _with_flags(base: Launch | None, flags: LaunchFlags, environ: Mapping[str, str]) -> Launch:
    if base is None or (flags.nnodes is not None and flags.node_rank is not None):
        return _by_flags(base, flags, environ)
    launch = base
    if flags.nnodes is not None:
        launch = replace(launch, nnodes=flags.nnodes)
    if flags.node_rank is not None:
        launch = replace(launch, node_rank=flags.node_rank)
    if flags.master_addr is not None or flags.master_port is not None:
        launch = replace(
            launch,
            master_addr=flags.master_addr or launch.master_addr,
            master_port=flags.master_port or launch.master_port,
            shared_store=False,
        )
    if flags.nproc_per_node is not None:
        launch = replace(launch, nproc_per_node=flags.nproc_per_node)
    return launch


def _by_flags(base: Launch | None, flags: LaunchFlags, environ: Mapping[str, str]) -> Launch:
    nnodes = 1 if flags.nnodes is None else flags.nnodes
    if nnodes > 1 and flags.node_rank is None:
        raise UsageError(
            f"--nnodes {nnodes} says nothing about which node this is: add --node-rank 0..{nnodes - 1}, "
            "or start it on every node with torchrun, srun or mpirun"
        )
    master_addr = flags.master_addr or environ.get("MASTER_ADDR") or (base.master_addr if base else None)
    node_rank = flags.node_rank or 0
    return Launch(
        source="flags" if flags.any_given else "none",
        rank=node_rank,
        world_size=nnodes,
        local_rank=base.local_rank if base else 0,
        local_world_size=base.local_world_size if base else 1,
        node_rank=node_rank,
        nnodes=nnodes,
        master_addr=master_addr if nnodes > 1 else None,
        master_port=flags.master_port or port(environ, DEFAULT_PORT),
        nproc_per_node=flags.nproc_per_node,
        hosts=base.hosts if base and len(base.hosts) == nnodes else (),
    )


def _refuse_impossible(launch: Launch) -> None:
    if launch.source == "flags" and launch.nnodes == 1 and launch.node_rank > 0:
        raise UsageError(
            f"--node-rank {launch.node_rank} needs --nnodes: without it the job has this one node"
        )
    if not 0 <= launch.node_rank < launch.nnodes:
        raise UsageError(
            f"node rank {launch.node_rank} is impossible in a job of {launch.nnodes} nodes: "
            f"expected 0..{launch.nnodes - 1}"
        )
    if not 0 <= launch.rank < launch.world_size:
        raise UsageError(
            f"rank {launch.rank} is impossible in a world of {launch.world_size}: expected 0..{launch.world_size - 1}"
        )
    if not 0 <= launch.local_rank < launch.local_world_size:
        raise UsageError(
            f"local rank {launch.local_rank} is impossible with {launch.local_world_size} processes on this node: "
            f"expected 0..{launch.local_world_size - 1}"
        )
    if launch.nnodes > 1 and not launch.master_addr:
        raise UsageError(
            f"no address of the first node is known for these {launch.nnodes} nodes: "
            "give --master-addr, or set MASTER_ADDR on every node"
        )


def _contradictions(found: list[Launch], flags: LaunchFlags) -> list[Contradiction]:
    said = {
        _NODE_COUNT_NAME[launch.source]: str(launch.nnodes)
        for launch in found
        # WORLD_SIZE counts GPUs and the launcher tasks: a multiple of the nodes is no contradiction.
        if launch.source != "environment" or launch.world_size % found[0].nnodes
    }
    if flags.nnodes is not None:
        said = {"--nnodes": str(flags.nnodes), **said}
    contradictions = []
    if len(set(said.values())) > 1:
        contradictions.append(Contradiction("nnodes", said))
    if found and flags.node_rank is not None and flags.node_rank != found[0].node_rank:
        ranks = {"--node-rank": str(flags.node_rank), found[0].source: str(found[0].node_rank)}
        contradictions.append(Contradiction("node_rank", ranks))
    torchrun = next((launch for launch in found if launch.source == "torchrun"), None)
    if torchrun and flags.nproc_per_node not in (None, torchrun.nproc_per_node):
        counts = {"--nproc-per-node": str(flags.nproc_per_node), "torchrun": str(torchrun.nproc_per_node)}
        contradictions.append(Contradiction("nproc_per_node", counts))
    return contradictions
