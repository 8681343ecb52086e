"""`python -m deepspeed.launcher.launch`: what DeepSpeed's launcher starts on every node, and some start themselves."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence

from ncclcheck.launch.line.deepspeed_line import DEFAULT_PORT
from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, Script
from ncclcheck.launch.line.option_words import Option, take, whole_number
from ncclcheck.model.errors import UsageError

# deepspeed/launcher/launch.py, parse_args, of 0.9 to 0.19.
_VALUES = ("--node_rank", "--master_addr", "--master_port", "--world_info", "--save_pid", "--enable_each_rank_log",
           "--bind_core_list", "--log_level", "--min_elastic_nodes", "--max_elastic_nodes")  # fmt: skip
_FLAGS = ("--module", "--no_python", "--no_local_rank", "--bind_cores_to_rank", "--enable_elastic_training")
OPTIONS = (
    *(Option((name,)) for name in _VALUES),
    *(Option((name,), is_flag=True) for name in _FLAGS),
    Option(("--quiet", "-q"), is_flag=True),
)


def read_deepspeed_node(words: Sequence[str], program: str) -> CommandLine | None:
    """Return the job of `deepspeed.launcher.launch WORDS`; None where the words only ask for help. Raises UsageError.

    `--world_info` is the base64 form of a JSON object: the GPUs of every host, in the order of the nodes.
    """
    taken = take(program, OPTIONS, words)
    if taken is None:
        return None
    values = taken.values
    hosts = _hosts(program, values.get("--world_info", ""))
    rank = whole_number(program, "--node_rank", values.get("--node_rank", "0"))
    if rank >= len(hosts):
        raise UsageError(f"{program} --node_rank {rank}: --world_info has {len(hosts)} hosts")
    line = LaunchLine(
        program,
        nnodes=len(hosts),
        node_rank=rank,
        master_addr=values.get("--master_addr", "127.0.0.1"),
        master_port=whole_number(program, "--master_port", values.get("--master_port", str(DEFAULT_PORT)), 1),
        nproc_per_node=list(hosts.values())[rank],
    )
    return CommandLine(line, Script(taken.script, "--module" in values))


def _hosts(program: str, text: str) -> dict[str, int]:
    try:
        content = json.loads(base64.urlsafe_b64decode(text))
        found = {str(host): len(gpus) for host, gpus in content.items()}
    except (binascii.Error, ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{program} --world_info {text[:40]!r}: expected the base64 form of {{HOST: [GPU, ...]}}"
        ) from error
    if not found:
        raise UsageError(f"{program} --world_info names no host")
    return found
