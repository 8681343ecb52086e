"""`deepspeed`: DeepSpeed's launcher, which reads a hostfile and starts the other nodes itself, unless --no_ssh."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, ReadFile, Script
from ncclcheck.launch.line.option_words import Option, take, whole_number
from ncclcheck.model.errors import UsageError

DEFAULT_HOSTFILE = "/job/hostfile"  # deepspeed/launcher/runner.py, DLTS_HOSTFILE
DEFAULT_PORT = 29500  # deepspeed/constants.py, TORCH_DISTRIBUTED_DEFAULT_PORT

# deepspeed/launcher/runner.py, parse_args, of 0.9 to 0.19.
OPTIONS = (
    Option(("--hostfile", "-H")),
    Option(("--include", "-i")),
    Option(("--exclude", "-e")),
    Option(("--num_gpus", "--num_accelerators")),
    *(
        Option((name,))
        for name in (
            "--num_nodes", "--min_elastic_nodes", "--max_elastic_nodes", "--master_port", "--master_addr",
            "--node_rank", "--launcher", "--launcher_args", "--enable_each_rank_log", "--autotuning",
            "--bind_core_list", "--ssh_port", "--venv_script", "--log_level",
        )
    ),
    *(
        Option((name,), is_flag=True)
        for name in (
            "--module", "--no_python", "--no_local_rank", "--no_ssh", "--no_ssh_check", "--force_multi", "--save_pid",
            "--elastic_training", "--bind_cores_to_rank",
        )
    ),
    Option(("--quiet", "-q"), is_flag=True),
)  # fmt: skip


def read_deepspeed(
    words: Sequence[str], environ: Mapping[str, str], read: ReadFile, program: str = "deepspeed"
) -> CommandLine | None:
    """Return the job of `deepspeed WORDS`; None where the words only ask for help. Raises UsageError.

    `read` gives the text of a file, or None where there is none: without a hostfile the job is this node's alone
    (deepspeed/launcher/runner.py, main).
    """
    del environ
    taken = take(program, OPTIONS, words)
    if taken is None:
        return None
    values = taken.values
    hosts = _hosts(program, values, read)
    slots = set(hosts.values())
    processes = slots.pop() if len(slots) == 1 else None
    if "--num_gpus" in values and whole_number(program, "--num_gpus", values["--num_gpus"], -1) > 0:
        processes = int(values["--num_gpus"])
    line = LaunchLine(program, nnodes=max(len(hosts), 1), nproc_per_node=processes)
    script = Script(taken.script, "--module" in values)
    if line.nnodes == 1:
        return CommandLine(line, script)
    return CommandLine(_of_several(line, values, tuple(hosts)), script)


def _of_several(line: LaunchLine, values: Mapping[str, str], hosts: tuple[str, ...]) -> LaunchLine:
    program = line.program
    port = whole_number(program, "--master_port", values.get("--master_port", str(DEFAULT_PORT)), 1)
    alone = "--no_ssh" in values
    rank = whole_number(program, "--node_rank", values.get("--node_rank", "-1"), -1) if alone else None
    if rank is not None and not 0 <= rank < len(hosts):
        raise UsageError(
            f"{program} --no_ssh needs --node_rank 0 to {len(hosts) - 1}: which of its {len(hosts)} this is"
        )
    return LaunchLine(
        program,
        nnodes=len(hosts),
        node_rank=rank,
        master_addr=values.get("--master_addr") or hosts[0],
        master_port=port,
        nproc_per_node=line.nproc_per_node,
        remote_hosts=() if alone else hosts,
    )


def _hosts(program: str, values: Mapping[str, str], read: ReadFile) -> dict[str, int]:
    """Return the slots by host, in the order of the hostfile; empty without one."""
    name = values.get("--hostfile", DEFAULT_HOSTFILE)
    text = read(name)
    if text is None:
        if whole_number(program, "--num_nodes", values.get("--num_nodes", "-1"), -1) > 1:
            raise UsageError(
                f"{program} --num_nodes {values['--num_nodes']}: the hostfile {name}, which names the nodes, is not "
                "there"
            )
        return {}
    pool = _filtered(program, parse_hostfile(text, name), values)
    count = whole_number(program, "--num_nodes", values.get("--num_nodes", "-1"), -1)
    return dict(list(pool.items())[:count]) if count > 0 else pool


def parse_hostfile(text: str, name: str) -> dict[str, int]:
    """Return the hosts of `HOST slots=N` lines, with comments (runner.py, _parse_hostfile). Raises UsageError."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        match = re.match(r"(\S+)\s+slots=(\d+)", words)
        if match is None:
            raise UsageError(f"{name}, line {number}: {words[:60]!r}: expected HOST slots=N")
        if match[1] in found:
            raise UsageError(f"{name}, line {number}: {match[1]} is named twice")
        found[match[1]] = int(match[2])
    if not found:
        raise UsageError(f"{name}: this hostfile names no host")
    return found


def _filtered(program: str, pool: dict[str, int], values: Mapping[str, str]) -> dict[str, int]:
    """Return the hosts that --include or --exclude leaves: `worker-0@worker-1:0,2` (parse_resource_filter)."""
    include, exclude = values.get("--include", ""), values.get("--exclude", "")
    if include and exclude:
        raise UsageError(f"{program}: --include and --exclude exclude each other")
    left = {} if include else dict(pool)
    named: dict[str, set[str]] = {}
    for part in filter(None, (include or exclude).split("@")):
        host, _, slots = part.partition(":")
        if host not in pool:
            raise UsageError(f"{program}: {host!r} of {part!r} is not in the hostfile")
        named.setdefault(host, set()).update(slot.strip() for slot in slots.split(",") if slot.strip())
    for host, chosen_slots in named.items():
        missing = next((slot for slot in chosen_slots if not slot.isdigit() or int(slot) >= pool[host]), None)
        if missing is not None:
            raise UsageError(f"{program}: there is no slot {missing!r} on {host}, which has {pool[host]}")
        count = len(chosen_slots) or pool[host]
        left[host] = count if include else pool[host] - count
    found = {host: left[host] for host in pool if left.get(host, 0) > 0}
    if not found:
        raise UsageError(f"{program}: --include and --exclude leave no host")
    return found
