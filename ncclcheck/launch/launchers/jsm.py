"""A task of LSF's Job Step Manager, as `jsrun` describes it in the environment."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.by_hosts import unplaced
from ncclcheck.launch.launcher import Launcher, TaskCount
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch


def detect_jsm(environ: Mapping[str, str]) -> Launch | None:
    """Return this task's place (IBM JSM, `jsrun`; read as in lightning/fabric/plugins/environments/lsf.py).

    LSB_MCPU_HOSTS lists `HOST SLOTS` pairs, the launch node first; the first compute node is node 0.
    """
    if "JSM_NAMESPACE_RANK" not in environ or "JSM_NAMESPACE_SIZE" not in environ:
        return None
    rank, world_size = number(environ, "JSM_NAMESPACE_RANK") or 0, count(environ, "JSM_NAMESPACE_SIZE")
    hosts = tuple(environ.get("LSB_MCPU_HOSTS", "").split()[2::2])
    launch = Launch(
        source="jsm",
        rank=rank,
        world_size=world_size,
        local_rank=number(environ, "JSM_NAMESPACE_LOCAL_RANK") or 0,
        local_world_size=count(environ, "JSM_NAMESPACE_LOCAL_SIZE"),
        node_rank=0,
        nnodes=1,
        master_addr=environ.get("MASTER_ADDR") or (hosts[0] if hosts else None),
        master_port=port(environ),
        job_id=f"jsm {environ.get('LSB_JOBID', '')}.{environ.get('JSM_NAMESPACE_ID', '')}",
        hosts=hosts,
    )
    return unplaced(launch, "local-rank")


JSM = Launcher(
    name="jsm",
    label="LSF",
    precedence=50,
    detect=detect_jsm,
    node_count_source="jsrun (JSM_NAMESPACE_SIZE)",
    variables=("JSM_NAMESPACE_*", "LSB_MCPU_HOSTS", "LSB_JOBID"),
    owned_prefixes=("JSM_",),
    rank_variables=("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK"),
    task_count=TaskCount("JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),
    binds_cpus=True,  # jsrun --bind: packed:1 unless told otherwise
    remote_starters=("jsrun", "lrun"),
)
