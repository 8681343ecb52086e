"""The options that several commands share, as torchrun and ruff name theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from ncclcheck import timeouts
from ncclcheck.cli.completion import check_names
from ncclcheck.cli.values import FileName, NameList, Percentage, Seconds, WholeNumber
from ncclcheck.model.formats.choices import FAIL_ON, PROTOCOLS, SCREEN_FORMATS

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]

MOST_NODES = 65536
# What --timeout is if it is not given. The other commands measure: see `usual_timeout`.
USUAL_TIMEOUTS = {
    "preflight": timeouts.PREFLIGHT_TIMEOUT_S,
    "isolate": timeouts.ISOLATE_TIMEOUT_S,
    "matrix": timeouts.ISOLATE_TIMEOUT_S,
    "node": timeouts.NODE_TIMEOUT_S,
}


def together(decorators: Sequence[Decorator]) -> Decorator:
    """Return the decorator that adds all these options, in their order."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


key_file = click.option(
    "--key-file",
    type=FileName(),
    help="Accept only nodes that have this key (a file with mode 600; or set NCCLCHECK_KEY).",
)
launch_place = together(
    [
        click.option("--nnodes", type=WholeNumber(1, MOST_NODES), help="Number of nodes in the job."),
        click.option("--node-rank", type=WholeNumber(0, MOST_NODES - 1), help="Rank of this node, from 0."),
        click.option(
            "--master-addr", metavar="HOST", help="Name or address of node 0, exactly as the job uses it."
        ),
        click.option("--master-port", type=WholeNumber(1, 65535), help="TCP port on node 0.  [29500]"),
        click.option("--nproc-per-node", type=WholeNumber(1, 4096), help="Ranks per node."),
    ]
)
_hosts = together(
    [
        click.option(
            "--hosts",
            metavar="NODES",
            help="Check these nodes from here over ssh: node[01-16], or 'slurm' for the nodes of this allocation.",
        ),
        click.option(
            "--hostfile", type=FileName(), help="Read the nodes from a host file (MPI, DeepSpeed or plain)."
        ),
        click.option(
            "--ssh", metavar="COMMAND", help="The ssh command with its options, e.g. 'ssh -F FILE'.  [ssh]"
        ),
        click.option(
            "--remote-python",
            type=FileName(),
            help="Path of the Python on the hosts that has ncclcheck.  [same path as here]",
        ),
        click.option(
            "--env",
            multiple=True,
            metavar="NAME[=VALUE]",
            help="Also pass this variable to the hosts (NCCL_*, GLOO_*, TORCH_* and MASTER_* always are); repeatable.",
        ),
        click.option(
            "--meet-in",
            type=FileName(),
            metavar="DIR",
            help="Exchange messages through this shared folder instead of over TCP.",
        ),
        key_file,
    ]
)
_expectations = together(
    [
        click.option(
            "--gpus-per-node", type=WholeNumber(0, 4096), help="Number of GPUs that every node must have."
        ),
        click.option(
            "--code",
            multiple=True,
            type=FileName(),
            metavar="PATH",
            help="Code that must be identical on all nodes; repeatable.",
        ),
        click.option(
            "--data",
            multiple=True,
            type=FileName(),
            metavar="PATH",
            help="Data that must exist and be identical on all nodes; repeatable.",
        ),
        click.option(
            "--shared-dir",
            multiple=True,
            type=FileName(),
            metavar="PATH",
            help="Folder that all nodes must share (writes a small file there and removes it); repeatable.",
        ),
        click.option(
            "--checkpoint",
            multiple=True,
            type=FileName(),
            metavar="DIR",
            help="Check that the newest checkpoint in this folder is complete, and the same on all nodes; repeatable.",
        ),
        click.option("--expect", type=FileName(), help="Policy file (TOML) that the nodes must meet."),
        click.option("--profile", metavar="NAME", help="Use [profile.NAME] of the policy."),
        click.option(
            "--select",
            multiple=True,
            type=NameList(),
            shell_complete=check_names,
            help="Run only these checks; NAMES are codes, code prefixes or slugs, separated by commas; repeatable.",
        ),
        *(
            click.option(option, multiple=True, type=NameList(), shell_complete=check_names, help=text)
            for option, text in (
                ("--ignore", "Skip these checks; NAMES as for --select."),
                ("--demote", "Report errors of these checks as warnings; NAMES as for --select."),
                ("--require", "Exit 3 if one of these checks could not run; NAMES as for --select."),
            )
        ),
        click.option(
            "--fail-on",
            type=click.Choice(FAIL_ON, case_sensitive=False),
            help="Lowest severity that makes the exit code 1.  [error]",
        ),
    ]
)


def usual_timeout(command: str) -> str:
    """Return what --help says about the --timeout of a command."""
    if command in USUAL_TIMEOUTS:
        return f"{USUAL_TIMEOUTS[command]:g}"
    if command == "soak":
        return f"{timeouts.BENCH_TIMEOUT_S + timeouts.BENCH_BUDGET_S:g} + --duration"
    added = f"; --isolate adds {timeouts.ISOLATE_TIMEOUT_S:g}" if command == "bench" else ""
    return f"{timeouts.BENCH_TIMEOUT_S:g} + --budget{added}"


def _time_limit(command: str) -> Decorator:
    return click.option(
        "--timeout", type=Seconds(), help=f"Time limit for the whole run.  [{usual_timeout(command)}]"
    )


_join_time = click.option(
    "--join-timeout",
    type=Seconds(),
    help=f"Time to wait for all nodes to join.  [{timeouts.JOIN_TIMEOUT_S:g}]",
)
output_format = click.option(
    "--format",
    "format_",
    type=click.Choice(SCREEN_FORMATS, case_sensitive=False),
    default="text",
    help="Format of standard output; github prints GitHub Actions annotations.  [text]",
)


def _outputs(further: str = "") -> Decorator:
    return click.option(
        "--output",
        multiple=True,
        type=FileName(),
        help="Also write the report to FILE, in the format of its suffix: .json, .xml (JUnit), .md, .html, .prom "
        f"(metrics), .txt{further} or $GITHUB_STEP_SUMMARY; repeatable.",
    )


outputs = _outputs()
outputs_or_csv = _outputs(", .csv (of matrix and of bench --try)")
from_file = click.option(
    "--from", "from_", type=FileName(), help="Replay a saved run or a facts file; contacts no node."
)
verbosity = together(
    [
        click.option("-v", "--verbose", count=True, help="Also show passed checks and all evidence."),
        click.option("-q", "--quiet", is_flag=True, help="Print no progress on standard error."),
    ]
)


def preflight_options(command: str) -> Decorator:
    """Return the options of every command that checks nodes, with the usual --timeout of this one."""
    return together(
        [launch_place, _hosts, _expectations, _time_limit(command), _join_time, from_file, verbosity]
    )


_slurm_health = together(
    [
        click.option(
            "--slurm-health",
            is_flag=True,
            help="Drain this node in Slurm after 2 bad runs of 3; resume it after 3 good runs if ncclcheck drained it.",
        ),
        click.option(
            "--dry-run", is_flag=True, help="With --slurm-health: print the change, but do not make it."
        ),
        click.option(
            "--max-drained",
            type=Percentage(1, 100),
            help="Share of the cluster's nodes that --slurm-health may keep drained.  [10%]",
        ),
        click.option(
            "--state-dir",
            type=FileName(),
            metavar="DIR",
            help="Folder in which --slurm-health keeps its last results.  [/run/ncclcheck]",
        ),
    ]
)
node_options = together([_expectations, _time_limit("node"), _slurm_health, from_file, verbosity])
save = click.option(
    "--save", type=FileName(), help="Save everything that was read and measured, to replay it with --from."
)
report_options = together([output_format, outputs, save])
bench_report_options = together([output_format, _outputs(", .csv (with --try)"), save])
matrix_report_options = together([output_format, _outputs(", .csv"), save])
node_report_options = together(
    [
        click.option(
            "--format",
            "format_",
            type=click.Choice([*SCREEN_FORMATS, *PROTOCOLS], case_sensitive=False),
            default="text",
            help="Format of standard output; npd and nagios print one line and use their own exit codes.  [text]",
        ),
        outputs,
        save,
    ]
)
image = click.option(
    "--image",
    is_flag=True,
    help="Check the container image this runs in; needs no GPU, network or second node.",
)
