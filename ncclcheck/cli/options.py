"""The options that several commands share, as torchrun and ruff name theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from ncclcheck.cli.values import FileName, Names, Seconds, WholeNumber

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]

MOST_NODES = 65536


def _all(decorators: Sequence[Decorator]) -> Decorator:
    def decorate(command: Command) -> Command:
        for one in reversed(decorators):
            command = one(command)
        return command

    return decorate


_launch = _all(
    [
        click.option("--nnodes", type=WholeNumber(1, MOST_NODES), help="Nodes of the job."),
        click.option(
            "--node-rank", type=WholeNumber(0, MOST_NODES - 1), help="Which of them this is, from 0."
        ),
        click.option(
            "--master-addr", metavar="HOST", help="Name or address of node 0, as the job will use it."
        ),
        click.option("--master-port", type=WholeNumber(1, 65535), help="Its TCP port.  [29500]"),
        click.option("--nproc-per-node", type=WholeNumber(1, 4096), help="Ranks the job has on each node."),
    ]
)
_expectations = _all(
    [
        click.option("--gpus-per-node", type=WholeNumber(0, 4096), help="GPUs every node must have."),
        click.option(
            "--code",
            multiple=True,
            type=FileName(),
            metavar="PATH",
            help="Code that must be the same everywhere; repeatable.",
        ),
        click.option(
            "--data",
            multiple=True,
            type=FileName(),
            metavar="PATH",
            help="Data that every node must have, and the same; repeatable.",
        ),
        click.option(
            "--shared-dir",
            multiple=True,
            type=FileName(),
            metavar="PATH",
            help="Folder that all nodes must share; each leaves a mark there for a moment; repeatable.",
        ),
        click.option("--expect", type=FileName(), help="TOML policy with what is demanded of the run."),
        click.option(
            "--select", multiple=True, type=Names(), help="Run only these checks: codes, prefixes, slugs."
        ),
        click.option("--ignore", multiple=True, type=Names(), help="Do not run these checks."),
        click.option("--demote", multiple=True, type=Names(), help="Their errors count as warnings."),
        click.option("--require", multiple=True, type=Names(), help="Must have run, else exit 3."),
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning", "never"], case_sensitive=False),
            help="What gives exit 1.  [error]",
        ),
    ]
)
_time = _all(
    [
        click.option(
            "--timeout", type=Seconds(), help="For the whole run.  [60; bench and run: 120 + --budget]"
        ),
        click.option("--join-timeout", type=Seconds(), help="For all nodes to come.  [30]"),
    ]
)
output_format = click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"], case_sensitive=False),
    default="text",
    help="Of standard output.  [text]",
)
outputs = click.option(
    "--output", multiple=True, type=FileName(), help="Write the report here too; .json or .txt; repeatable."
)
from_file = click.option(
    "--from", "from_", type=FileName(), help="Replay a saved run or a facts file instead."
)
verbosity = _all(
    [
        click.option("-v", "--verbose", count=True, help="Show also what passed, and all evidence."),
        click.option("-q", "--quiet", is_flag=True, help="No progress on standard error."),
    ]
)
preflight_options = _all([_launch, _expectations, _time, from_file, verbosity])
report_options = _all(
    [output_format, outputs, click.option("--save", type=FileName(), help="Save what was seen, for --from.")]
)
bench_options = _all(
    [
        click.option("--sizes", metavar="SIZES", help="1M-1G, 1M-1G:4x, 1M-16M:+1M or 8,1K,4M.  [1M-16M]"),
        click.option(
            "--ops", multiple=True, type=Names(), help="Collectives, or 'all'.  [all_reduce,all_gather]"
        ),
        click.option(
            "--backend",
            type=click.Choice(["auto", "nccl", "gloo"], case_sensitive=False),
            help="auto: nccl where every node has GPUs.  [auto]",
        ),
        click.option("--dtype", metavar="TYPE", help="Element type.  [float32]"),
        click.option(
            "--iters", metavar="auto|N", help="Timed iterations per size; auto: until it is certain.  [auto]"
        ),
        click.option("--warmup", type=WholeNumber(0, 10**6), help="Untimed iterations per size.  [5]"),
        click.option("--budget", type=Seconds(), help="For all measuring.  [20]"),
        click.option("--no-verify", is_flag=True, help="Do not verify the data."),
        click.option(
            "--as-is",
            is_flag=True,
            help="Measure what the job would get with its environment as it is; a hang is the result.",
        ),
        click.option("--advised", is_flag=True, help="Measure under the advised settings."),
    ]
)
