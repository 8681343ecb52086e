"""A container of an Amazon SageMaker training job: one process per host, which starts the ranks itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ncclcheck.launch.reading import number, port
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import Launch

DEFAULT_PORT = 29500


def detect_sagemaker(environ: Mapping[str, str]) -> Launch | None:
    """This host's place among several, in the order of SM_HOSTS; None elsewhere, and on the only host.

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
        master_port=port(environ, DEFAULT_PORT),
        nproc_per_node=number(environ, "SM_NUM_GPUS") or None,
        job_id=f"sagemaker {environ.get('TRAINING_JOB_NAME', '')}",
        hosts=tuple(map(str, hosts)),
    )
