"""A process of Open MPI's mpirun, as it describes it in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ncclcheck.launch.by_hosts import unplaced
from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch


def detect_openmpi(environ: Mapping[str, str]) -> Launch | None:
    """Return this process's rank in MPI_COMM_WORLD (Open MPI FAQ, "environment variables that Open MPI sets").

    No variable has the node's number: OMPI_COMM_WORLD_NODE_RANK counts processes, and slots need not be even.
    """
    if "OMPI_COMM_WORLD_RANK" not in environ:
        return None
    rank = number(environ, "OMPI_COMM_WORLD_RANK") or 0
    launch = Launch(
        source="openmpi",
        rank=rank,
        world_size=count(environ, "OMPI_COMM_WORLD_SIZE"),
        local_rank=number(environ, "OMPI_COMM_WORLD_LOCAL_RANK") or 0,
        local_world_size=count(environ, "OMPI_COMM_WORLD_LOCAL_SIZE"),
        node_rank=0,
        nnodes=1,
        master_addr=environ.get("MASTER_ADDR") or _mpirun_address(environ),
        master_port=port(environ),
        job_id=f"openmpi {environ.get('PMIX_NAMESPACE', environ.get('OMPI_MCA_ess_base_jobid', ''))}",
    )
    return unplaced(launch, "local-rank")


def _mpirun_address(environ: Mapping[str, str]) -> str | None:
    """Return the address of the node mpirun runs on, which is the first node unless the hostfile leaves it out.

    Taken from the contact URI of ORTE (`123.0;tcp://10.0.0.1,10.1.0.1:5000`) or of PRRTE.
    """
    uri = environ.get("OMPI_MCA_orte_hnp_uri") or environ.get("PRTE_MCA_prte_hnp_uri", "")
    match = re.search(r"tcp://([0-9.]+)", uri)
    return match[1] if match else None


OPENMPI = Launcher(
    name="openmpi",
    label="Open MPI",
    precedence=30,
    detect=detect_openmpi,
    node_count_source="mpirun (OMPI_COMM_WORLD_SIZE)",
    # Of OMPI_MCA_* only what says where a process is: users set the others, and PMIx keeps its credentials there.
    variables=(
        "OMPI_COMM_WORLD_*", "OMPI_MCA_orte_hnp_uri",
        "OMPI_MCA_ess_base_jobid", "PRTE_MCA_prte_hnp_uri", "PMIX_NAMESPACE",
    ),
    owned_prefixes=("OMPI_", "PMIX_"),
    rank_variables=("OMPI_COMM_WORLD_*", "OMPI_MCA_*", "PMIX_*"),
    task_count=TaskCount("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    binds_cpus=True,
    set_for_all_ranks="mpirun -x {name} ...",
    remote_starters=(
        "mpirun", "mpiexec", "orterun", "prun", "prterun", "mpirun.openmpi", "mpiexec.openmpi",
    ),
)  # fmt: skip
