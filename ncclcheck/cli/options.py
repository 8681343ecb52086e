"""The options that several commands share, as torchrun and ruff name theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from ncclcheck import timeouts
from ncclcheck.cli.completion import check_names, dtypes, ops, sizes
from ncclcheck.cli.values import FileName, Names, Seconds, WholeNumber

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]

MOST_NODES = 65536


def _all(decorators: Sequence[Decorator]) -> Decorator:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
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
_hosts = _all(
    [
        click.option(
            "--hosts",
            metavar="NODES",
            help="Check these from here, over ssh: node[01-16], or slurm: the nodes of this allocation.",
        ),
        click.option(
            "--hostfile", type=FileName(), help="The same, from a host file: of MPI, DeepSpeed or plain."
        ),
        click.option("--ssh", metavar="COMMAND", help="ssh with options of its own: 'ssh -F FILE'.  [ssh]"),
        click.option(
            "--remote-python", type=FileName(), help="The Python with ncclcheck on the hosts.  [as here]"
        ),
        click.option(
            "--env",
            multiple=True,
            metavar="NAME[=VALUE]",
            help="Set there too, besides NCCL_*, GLOO_*, TORCH_* and MASTER_*; repeatable.",
        ),
        click.option(
            "--meet-in",
            type=FileName(),
            metavar="DIR",
            help="Meet in this shared folder, where TCP may be blocked.",
        ),
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
        click.option("--profile", metavar="NAME", help="Take this [profile.NAME] of the policy."),
        click.option(
            "--select",
            multiple=True,
            type=Names(),
            shell_complete=check_names,
            help="Run only these checks: codes, prefixes, slugs.",
        ),
        *(
            click.option(option, multiple=True, type=Names(), shell_complete=check_names, help=text)
            for option, text in (
                ("--ignore", "Do not run these checks."),
                ("--demote", "Their errors count as warnings."),
                ("--require", "Must have run, else exit 3."),
            )
        ),
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
            "--timeout",
            type=Seconds(),
            help="Time for the whole run.  "
            f"[{timeouts.PREFLIGHT_TIMEOUT_S:g}; bench and run: {timeouts.BENCH_TIMEOUT_S:g} + --budget]",
        ),
        click.option(
            "--join-timeout",
            type=Seconds(),
            help=f"Time to wait for all nodes to join.  [{timeouts.JOIN_TIMEOUT_S:g}]",
        ),
    ]
)
output_format = click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "junit", "md", "github"], case_sensitive=False),
    default="text",
    help="Of standard output; github: annotations for GitHub Actions.  [text]",
)
outputs = click.option(
    "--output",
    multiple=True,
    type=FileName(),
    help="Write the report here too: .json, .xml (JUnit), .md, .html, .txt or $GITHUB_STEP_SUMMARY; repeatable.",
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
preflight_options = _all([_launch, _hosts, _expectations, _time, from_file, verbosity])
report_options = _all(
    [output_format, outputs, click.option("--save", type=FileName(), help="Save what was seen, for --from.")]
)
image = click.option(
    "--image",
    is_flag=True,
    help="Check this container image where it is built: no GPU, network or node is needed.",
)
bench_options = _all(
    [
        click.option(
            "--sizes",
            metavar="SIZES",
            shell_complete=sizes,
            help="1M-1G, 1M-1G:4x, 1M-16M:+1M or 8,1K,4M.  [1M-16M]",
        ),
        click.option(
            "--ops",
            multiple=True,
            type=Names(),
            shell_complete=ops,
            help="Collectives, or 'all'.  [all_reduce,all_gather]",
        ),
        click.option(
            "--backend",
            type=click.Choice(["auto", "nccl", "gloo"], case_sensitive=False),
            help="auto: nccl where every node has GPUs.  [auto]",
        ),
        click.option("--dtype", metavar="TYPE", shell_complete=dtypes, help="Element type.  [float32]"),
        click.option(
            "--iters", metavar="auto|N", help="Timed iterations per size; auto: until it is certain.  [auto]"
        ),
        click.option("--warmup", type=WholeNumber(0, 10**6), help="Untimed iterations per size.  [5]"),
        click.option("--budget", type=Seconds(), help=f"For all measuring.  [{timeouts.BENCH_BUDGET_S:g}]"),
        click.option("--no-verify", is_flag=True, help="Do not verify the data."),
        click.option("--cuda-graph", is_flag=True, help="Measure the replay of CUDA graphs (nccl)."),
        click.option(
            "--min-busbw",
            multiple=True,
            metavar="RULE",
            help="Least bus bandwidth in GB/s, else exit 4: 300, @1G=300, all_reduce@1G=300; repeatable.",
        ),
        click.option(
            "--baseline", type=FileName(), help="Report or --save file; slower than in it is exit 4."
        ),
        click.option(
            "--tolerance", metavar="PCT", help="How much slower than in --baseline a point may be.  [5]"
        ),
        click.option(
            "--as-is",
            is_flag=True,
            help="Measure what the job would get with its environment as it is; a hang is the result.",
        ),
        click.option("--advised", is_flag=True, help="Measure under the advised settings."),
    ]
)
