"""A process of Open MPI's mpirun, or of a PMI launcher (MPICH, Intel MPI, `srun --mpi=pmi2`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch

DEFAULT_PORT = 29500


def detect_openmpi(environ: Mapping[str, str]) -> Launch | None:
    """This process's place in MPI_COMM_WORLD (Open MPI FAQ, "environment variables that Open MPI sets")."""
    if "OMPI_COMM_WORLD_RANK" not in environ:
        return None
    rank = number(environ, "OMPI_COMM_WORLD_RANK") or 0
    world_size = count(environ, "OMPI_COMM_WORLD_SIZE")
    local_world_size = count(environ, "OMPI_COMM_WORLD_LOCAL_SIZE")
    nnodes = -(-world_size // local_world_size)
    by_node = "node" in environ.get("OMPI_MCA_rmaps_base_mapping_policy", "").split(":")[0]
    return Launch(
        source="openmpi",
        rank=rank,
        world_size=world_size,
        local_rank=number(environ, "OMPI_COMM_WORLD_LOCAL_RANK") or 0,
        local_world_size=local_world_size,
        node_rank=rank % nnodes if by_node else rank // local_world_size,
        nnodes=nnodes,
        master_addr=environ.get("MASTER_ADDR") or _mpirun_address(environ),
        master_port=port(environ, DEFAULT_PORT),
        job_id=f"openmpi {environ.get('PMIX_NAMESPACE', environ.get('OMPI_MCA_ess_base_jobid', ''))}",
    )


def _mpirun_address(environ: Mapping[str, str]) -> str | None:
    """The address of the node mpirun runs on, which is the first node unless the hostfile leaves it out.

    Taken from the contact URI of ORTE (`123.0;tcp://10.0.0.1,10.1.0.1:5000`) or of PRRTE.
    """
    uri = environ.get("OMPI_MCA_orte_hnp_uri") or environ.get("PRTE_MCA_prte_hnp_uri", "")
    match = re.search(r"tcp://([0-9.]+)", uri)
    return match[1] if match else None


def detect_pmi(environ: Mapping[str, str]) -> Launch | None:
    """This process's place as PMI tells it; hydra and Intel MPI add the local rank as MPI_LOCALRANKID."""
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
        master_port=port(environ, DEFAULT_PORT),
        job_id=f"pmi {environ.get('PMI_ID', environ.get('PMI_JOBID', ''))}",
    )
