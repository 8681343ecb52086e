"""A process of a PMI launcher (MPICH, Intel MPI, `srun --mpi=pmi2`), as it describes it in the environment."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch


def detect_pmi(environ: Mapping[str, str]) -> Launch | None:
    """Return this process's place as PMI tells it; hydra and Intel MPI add the local rank as MPI_LOCALRANKID."""
    if "PMI_RANK" not in environ or "PMI_SIZE" not in environ:
        return None
    rank, world_size = number(environ, "PMI_RANK") or 0, count(environ, "PMI_SIZE")
    local_world_size = count(environ, "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE")
    return Launch(
        source="pmi",
        rank=rank,
        world_size=world_size,
        local_rank=number(environ, "MPI_LOCALRANKID", "PMI_LOCAL_RANK") or 0,
        local_world_size=local_world_size,
        node_rank=rank // local_world_size,
        nnodes=-(-world_size // local_world_size),
        master_addr=environ.get("MASTER_ADDR"),
        master_port=port(environ),
        job_id=f"pmi {environ.get('PMI_ID', environ.get('PMI_JOBID', ''))}",
    )


PMI = Launcher(
    name="pmi",
    label="PMI",
    precedence=40,
    detect=detect_pmi,
    node_count_source="PMI (PMI_SIZE)",
    variables=("PMI_*", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    owned_prefixes=("PMI_", "PMI2_"),
    rank_variables=("PMI_*", "PMI2_*", "MPI_LOCALRANKID"),
    task_count=TaskCount("PMI_SIZE", "PMI_RANK"),
    binds_cpus=True,
    remote_starters=("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich", "mpirun_rsh", "ibrun", "aprun"),
)
