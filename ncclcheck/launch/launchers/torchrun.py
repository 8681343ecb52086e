"""torchrun, as it describes a process of the job in the environment, and its command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.line.launch_line import CommandLine, ReadFile
from ncclcheck.launch.line.torchrun_line import read_torchrun
from ncclcheck.launch.reading import count, number, port
from ncclcheck.model.launch import Launch


def detect_torchrun(environ: Mapping[str, str]) -> Launch | None:
    """Return the place torchrun gave this process (`torch/distributed/elastic/agent/server/local_elastic_agent.py`)."""
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
        master_port=port(environ),
        nproc_per_node=local_world_size,
        job_id=f"torchrun {environ['TORCHELASTIC_RUN_ID']}.{restart}",
        shared_store=environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() in {"true", "1"},
    )


def _read_line(
    words: Sequence[str], environ: Mapping[str, str], read: ReadFile, program: str
) -> CommandLine | None:
    del read
    return read_torchrun(words, environ, program)


TORCHRUN = Launcher(
    name="torchrun",
    label="torchrun",
    precedence=10,
    detect=detect_torchrun,
    node_count_source="torchrun (GROUP_WORLD_SIZE)",
    variables=(
        "TORCHELASTIC_*",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
    ),
    owned_prefixes=("TORCHELASTIC_",),
    rank_variables=("RANK", "LOCAL_RANK", "ROLE_RANK"),
    commands={("torchrun",): _read_line},
    modules={
        ("torch.distributed.run",): _read_line,
        ("torch.distributed.launch",): _read_line,
        ("torch.distributed.launcher.run",): _read_line,
    },
)
