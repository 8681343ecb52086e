"""A container of an Amazon SageMaker training job: one process per host, which starts the ranks itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.reading import number, port
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch


def detect_sagemaker(environ: Mapping[str, str]) -> Launch | None:
    """Return this host's place among several, in the order of SM_HOSTS; None elsewhere, and on the only host.

    (aws/sagemaker-training-toolkit, ENVIRONMENT_VARIABLES.md: SM_HOSTS is a JSON list, SM_CURRENT_HOST one of it.)
    Raises UsageError where they contradict each other.
    """
    current, listed = environ.get("SM_CURRENT_HOST"), environ.get("SM_HOSTS")
    if not current or not listed:
        return None
    try:
        hosts = json.loads(listed)
    except ValueError:
        hosts = None
    if not isinstance(hosts, list) or current not in hosts:
        raise UsageError(
            f"SM_CURRENT_HOST={current[:60]!r} is not in SM_HOSTS={listed[:200]!r}, a JSON list of hosts"
        )
    if len(hosts) == 1:
        return None
    rank = hosts.index(current)
    return Launch(
        source="sagemaker",
        rank=rank,
        world_size=len(hosts),
        local_rank=0,
        local_world_size=1,
        node_rank=rank,
        nnodes=len(hosts),
        master_addr=environ.get("MASTER_ADDR") or str(hosts[0]),
        master_port=port(environ),
        nproc_per_node=number(environ, "SM_NUM_GPUS") or None,
        job_id=f"sagemaker {environ.get('TRAINING_JOB_NAME', '')}",
        hosts=tuple(map(str, hosts)),
    )


SAGEMAKER = Launcher(
    name="sagemaker",
    label="SageMaker",
    precedence=60,
    detect=detect_sagemaker,
    node_count_source="SageMaker (SM_HOSTS)",
    # By name, not SM_*: SM_HPS, SM_USER_ARGS and SM_TRAINING_ENV hold the user's hyperparameters.
    variables=("SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "TRAINING_JOB_NAME"),
    owned_prefixes=("SM_",),
)
