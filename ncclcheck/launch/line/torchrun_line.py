"""`torchrun`, `python -m torch.distributed.run` and `torch.distributed.launch`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, PlaceNotGivenError, Script
from ncclcheck.launch.line.option_words import Option, both_spellings, take, truth, whole_number
from ncclcheck.model.errors import UsageError

STATIC_PORT = 29500  # torch/distributed/run.py: the default of --master-port
C10D_PORT = 29400  # torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py, DEFAULT_PORT
_LAST_PORT = 65535

# torch/distributed/run.py, get_args_parser, of torch 2.2 to 2.13. Each can also be set as PET_NAME
# (torch/distributed/argparse_util.py), but for those in _NOT_FROM_ENVIRONMENT.
_VALUES = (
    "--nnodes", "--nproc-per-node", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf",
    "--max-restarts", "--monitor-interval", "--start-method", "--event-log-handler", "--role", "--log-dir",
    "--local-ranks-filter", "--duplicate-stdout-filters", "--duplicate-stderr-filters", "--node-rank",
    "--master-addr", "--master-port", "--local-addr", "--logs-specs", "--numa-binding", "--signals-to-handle",
    "--shutdown-timeout",
)  # fmt: skip
_FLAGS = ("--standalone", "--no-python", "--run-path", "--virtual-local-rank")
_NOT_FROM_ENVIRONMENT = frozenset({"--logs-specs", "--numa-binding"})
OPTIONS = (
    *(Option(both_spellings(name)) for name in _VALUES),
    *(Option(both_spellings(name), is_flag=True) for name in _FLAGS),
    Option(("--module", "-m"), is_flag=True),
    Option(("--redirects", "-r")),
    Option(("--tee", "-t")),
)
# The variables that set the options.
VARIABLES = tuple(f"PET_{option.names[0][2:].replace('-', '_').upper()}" for option in OPTIONS)
_LAUNCH_OPTIONS = (*OPTIONS, Option(both_spellings("--use-env"), is_flag=True))  # torch/distributed/launch.py


def read_torchrun(
    words: Sequence[str], environ: Mapping[str, str], program: str = "torchrun"
) -> CommandLine | None:
    """Return the job of `torchrun WORDS`; None where the words only ask for help. Raises UsageError."""
    table = _LAUNCH_OPTIONS if program.endswith("launch") else OPTIONS
    taken = take(program, table, words)
    if taken is None:
        return None
    values = {**options_in_environment(environ), **taken.values}
    return CommandLine(line_of(program, values), Script(taken.script, "--module" in values))


def options_in_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what PET_* set, by the option's name: a value as it is, a flag where it is a number other than 0."""
    values = {}
    for option, variable in zip(OPTIONS, VARIABLES, strict=True):
        name = option.names[0]
        text = environ.get(variable)
        if text is None or name in _NOT_FROM_ENVIRONMENT:
            continue
        if not option.is_flag:
            values[name] = text
        elif text.strip().isdigit() and int(text):
            values[name] = ""
    return values


def line_of(program: str, values: Mapping[str, str]) -> LaunchLine:
    """Return the job of torchrun's options, as torch/distributed/run.py reads them (`run`, `config_from_args`)."""
    least, most = _node_counts(program, values.get("--nnodes", "1:1"))
    backend = values.get("--rdzv-backend", "static")
    endpoint = values.get("--rdzv-endpoint", "")
    standalone = "--standalone" in values
    if most > 1 and standalone:
        raise UsageError(
            f"{program} --standalone --nnodes {most}: every node would start a job of its own: leave out --standalone"
        )
    line = LaunchLine(
        program,
        nnodes=most,
        nproc_per_node=_processes(program, values.get("--nproc-per-node", "1")),
        local_addr=values.get("--local-addr"),
        rendezvous_id=values.get("--rdzv-id", "none"),
    )
    if most == 1:
        return line
    if backend == "static":
        return _static(line, values, endpoint)
    if backend != "c10d" or _configuration(program, values).get("store_type", "tcp").strip().lower() != "tcp":
        raise PlaceNotGivenError(
            f"{program} --rdzv-backend {backend}: ncclcheck knows no way to meet the other nodes there: "
            f"add --nnodes {most}, --node-rank and --master-addr before '--'"
        )
    host, port = endpoint_of(program, endpoint, C10D_PORT)
    return LaunchLine(
        program,
        nnodes=most,
        min_nodes=least,
        master_addr=host,
        master_port=port,
        nproc_per_node=line.nproc_per_node,
        rendezvous="c10d",
        rendezvous_id=line.rendezvous_id,
        hosts_store=truth(_configuration(program, values).get("is_host")),
        local_addr=line.local_addr,
    )


def _static(line: LaunchLine, values: Mapping[str, str], endpoint: str) -> LaunchLine:
    program = line.program
    rank = whole_number(program, "--node-rank", values.get("--node-rank", "0"))
    if rank >= line.nnodes:
        raise UsageError(
            f"{program} --node-rank {rank} is impossible with --nnodes {line.nnodes}: expected 0 to {line.nnodes - 1}"
        )
    host = values.get("--master-addr", "127.0.0.1")
    port = whole_number(program, "--master-port", values.get("--master-port", str(STATIC_PORT)))
    if endpoint:
        host, port = endpoint_of(program, endpoint, 0)
        if port == 0:
            raise UsageError(
                f"{program} --rdzv-endpoint {endpoint!r}: without c10d torch needs a port: HOST:PORT"
            )
    if not 0 < port <= _LAST_PORT:
        raise UsageError(f"{program} says port {port} for node 0, which is none: expected 1 to {_LAST_PORT}")
    return LaunchLine(
        program,
        nnodes=line.nnodes,
        node_rank=rank,
        master_addr=host.removeprefix("[").removesuffix("]"),
        master_port=port,
        nproc_per_node=line.nproc_per_node,
        rendezvous_id=line.rendezvous_id,
        local_addr=line.local_addr,
    )


def _node_counts(program: str, text: str) -> tuple[int, int]:
    parts = [whole_number(program, "--nnodes", part, 1) for part in text.split(":")]
    if len(parts) > 2 or parts[0] > parts[-1]:  # noqa: PLR2004 (MIN:MAX)
        raise UsageError(f"{program} --nnodes {text!r}: expected a number of nodes, or MIN:MAX")
    return parts[0], parts[-1]


def _processes(program: str, text: str) -> int | None:
    """Return a number of processes per node; None for `gpu`, `auto` and the like, which depend on the machine."""
    return None if text.isalpha() else whole_number(program, "--nproc-per-node", text, 1)


def _configuration(program: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of `--rdzv-conf a=1,b=2` (rendezvous/utils.py, _parse_rendezvous_config)."""
    found = {}
    for part in values.get("--rdzv-conf", "").strip().split(","):
        name, _, value = part.partition("=")
        if part and not (name.strip() and value.strip()):
            raise UsageError(f"{program} --rdzv-conf {part!r}: expected KEY=VALUE, separated by commas")
        found[name.strip()] = value.strip()
    return found


def endpoint_of(program: str, endpoint: str, default_port: int) -> tuple[str, int]:
    """Return host and port of `HOST[:PORT]`, as torch reads it (rendezvous/utils.py, parse_rendezvous_endpoint)."""
    text = endpoint.strip()
    if not text:
        return "localhost", default_port
    host, colon, port = (text, "", "") if text.endswith("]") else text.rpartition(":")
    if not colon:
        host, port = text, str(default_port)
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > _LAST_PORT or not re.fullmatch(r"[\w.:-]+", host):
        raise UsageError(f"{program} --rdzv-endpoint {endpoint!r}: expected HOST:PORT")
    return host, int(port)
