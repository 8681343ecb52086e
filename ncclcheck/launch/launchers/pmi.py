"""A process of a PMI launcher (MPICH, Intel MPI, MVAPICH, Cray PALS, `srun --mpi=pmi2`), by its environment."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.by_hosts import unplaced
from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch

# Hydra of MPICH and Intel MPI (src/pm/hydra/proxy/pmip_cb.c), Cray PALS, MVAPICH's mpirun_rsh.
_LOCAL_RANK = ("MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "MV2_COMM_WORLD_LOCAL_RANK")
_LOCAL_SIZE = ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")


def detect_pmi(environ: Mapping[str, str]) -> Launch | None:
    """Return this process's rank as PMI gives it, with the local rank where the launcher adds one."""
    if "PMI_RANK" not in environ or "PMI_SIZE" not in environ:
        return None
    local_rank = number(environ, *_LOCAL_RANK)
    local_size = number(environ, *_LOCAL_SIZE)
    is_local_told = local_rank is not None and local_size is not None
    launch = Launch(
        source="pmi",
        rank=number(environ, "PMI_RANK") or 0,
        world_size=count(environ, "PMI_SIZE"),
        local_rank=(local_rank or 0) if is_local_told else 0,
        local_world_size=count(environ, *_LOCAL_SIZE) if is_local_told else 1,
        node_rank=0,
        nnodes=1,
        master_addr=environ.get("MASTER_ADDR"),
        master_port=port(environ),
        job_id=f"pmi {environ.get('PMI_JOBID', '')}",
    )
    return unplaced(launch, "local-rank" if is_local_told else "rank")


PMI = Launcher(
    name="pmi",
    label="PMI",
    precedence=40,
    detect=detect_pmi,
    node_count_source="PMI (PMI_SIZE)",
    variables=("PMI_*", "PALS_RANKID", *_LOCAL_RANK, *_LOCAL_SIZE),
    owned_prefixes=("PMI_", "PMI2_", "PALS_"),
    rank_variables=("PMI_*", "PMI2_*", *_LOCAL_RANK, "PALS_RANKID"),
    task_count=TaskCount("PMI_SIZE", "PMI_RANK"),
    binds_cpus=True,
    remote_starters=("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich", "mpirun_rsh", "ibrun", "aprun"),
)
