"""A task of a Slurm step, as `srun` describes it in the environment."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, node_names, number, port, tasks_on_node
from ncclcheck.model.launch import Launch

FIRST_PORT, PORTS = 29500, 500
# Set by Open MPI's mpirun and by Hydra for each rank, and never by srun: srun started their daemons.
_MPI_RANKS = ("OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")


def detect_slurm(environ: Mapping[str, str]) -> Launch | None:
    """Return this task's place; None outside a step: a batch script has SLURM_PROCID too, and is always alone.

    None also where the task is a daemon of mpirun, of which the processes of the job inherit its place.
    """
    if not environ.get("SLURM_PROCID") or not environ.get("SLURM_STEP_ID"):
        return None
    if any(environ.get(name) for name in _MPI_RANKS):
        return None
    hosts = node_names(environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_NODELIST", ""))
    node_rank = number(environ, "SLURM_NODEID") or 0
    tasks = environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE", "")
    job, step = environ.get("SLURM_JOB_ID", "0"), environ.get("SLURM_STEP_ID", "0")
    # Jobs that share their first node must not meet on one port, so the default moves with the job and step.
    offset = (int(job) * 7 + int(step)) % PORTS if job.isdecimal() and step.isdecimal() else 0
    return Launch(
        source="slurm",
        rank=number(environ, "SLURM_PROCID") or 0,
        world_size=count(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"),
        local_rank=number(environ, "SLURM_LOCALID") or 0,
        local_world_size=tasks_on_node(tasks, node_rank) or 1,
        node_rank=node_rank,
        nnodes=count(environ, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        master_addr=environ.get("MASTER_ADDR") or (hosts[0] if hosts else None),
        master_port=port(environ, FIRST_PORT + offset),
        job_id=f"slurm {job}.{step}",
        hosts=hosts,
    )


SLURM = Launcher(
    name="slurm",
    label="Slurm",
    precedence=20,
    detect=detect_slurm,
    node_count_source="Slurm (SLURM_STEP_NUM_NODES)",
    # By name, not SLURM_*: SLURM_JWT is a login, SLURM_JOB_ACCOUNT and SLURM_JOB_NAME are the user's own.
    variables=(
        "SLURM_STEP_*", "SLURM_TASKS_*", "SLURM_NTASKS*", "SLURM_GPUS*", "SLURM_CPUS_*", "SLURM_PROCID",
        "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_NODELIST", "SLURM_JOB_ID",
        "SLURM_JOBID", "SLURM_STEPID", "SLURM_JOB_NUM_NODES", "SLURM_JOB_NODELIST", "SLURM_JOB_GPUS",
        "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_DISTRIBUTION",
        "SLURM_MPI_TYPE", "SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN",
    ),
    owned_prefixes=("SLURM",),
    rank_variables=("SLURM_PROCID", "SLURM_LOCALID", "SLURM_TASK_PID"),
    task_count=TaskCount("SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
    binds_cpus=True,
    set_for_all_ranks="srun --export=ALL ...",
    remote_starters=("srun",),
)  # fmt: skip
