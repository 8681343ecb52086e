"""The options that several commands share, as torchrun and ruff name theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from ncclcheck import timeouts
from ncclcheck.cli.completion import check_names, dtypes, ops, sizes
from ncclcheck.cli.values import FileName, NameList, Seconds, WholeNumber
from ncclcheck.model.formats.choices import FAIL_ON, HOST_ORDERS, NODE_LISTS, PROTOCOLS, SCREEN_FORMATS

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]

MOST_NODES = 65536


def _all(decorators: Sequence[Decorator]) -> Decorator:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


key_file = click.option(
    "--key-file",
    type=FileName(),
    help="Take part only with nodes that have this key (mode 600; or set NCCLCHECK_KEY).",
)
launch_place = _all(
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
_hosts = _all(
    [
        click.option(
            "--hosts",
            metavar="NODES",
            help="Check these nodes from here, over ssh: node[01-16], or 'slurm' for the nodes of this allocation.",
        ),
        click.option(
            "--hostfile", type=FileName(), help="Read the nodes from a host file (MPI, DeepSpeed or plain)."
        ),
        click.option("--ssh", metavar="COMMAND", help="ssh command, with any options: 'ssh -F FILE'.  [ssh]"),
        click.option(
            "--remote-python",
            type=FileName(),
            help="Python on the hosts that has ncclcheck.  [same path as here]",
        ),
        click.option(
            "--env",
            multiple=True,
            metavar="NAME[=VALUE]",
            help="Also set this variable on the hosts (NCCL_*, GLOO_*, TORCH_* and MASTER_* always are); repeatable.",
        ),
        click.option(
            "--meet-in",
            type=FileName(),
            metavar="DIR",
            help="Meet in this shared folder instead of over TCP.",
        ),
        key_file,
    ]
)
_expectations = _all(
    [
        click.option(
            "--gpus-per-node", type=WholeNumber(0, 4096), help="Number of GPUs every node must have."
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
            help="Folder that all nodes must share (a small file is written there and removed); repeatable.",
        ),
        click.option(
            "--checkpoint",
            multiple=True,
            type=FileName(),
            metavar="DIR",
            help="Folder of checkpoints: is the newest one complete, and the same on all nodes; repeatable.",
        ),
        click.option("--expect", type=FileName(), help="Policy file (TOML) that the nodes must meet."),
        click.option("--profile", metavar="NAME", help="Use [profile.NAME] of the policy."),
        click.option(
            "--select",
            multiple=True,
            type=NameList(),
            shell_complete=check_names,
            help="Run only these checks (codes, code prefixes or slugs).",
        ),
        *(
            click.option(option, multiple=True, type=NameList(), shell_complete=check_names, help=text)
            for option, text in (
                ("--ignore", "Skip these checks."),
                ("--demote", "Treat errors of these checks as warnings."),
                ("--require", "Exit 3 if one of these checks could not run."),
            )
        ),
        click.option(
            "--fail-on",
            type=click.Choice(FAIL_ON, case_sensitive=False),
            help="Lowest severity that makes the exit code 1.  [error]",
        ),
    ]
)
_time = _all(
    [
        click.option(
            "--timeout",
            type=Seconds(),
            help="Time limit for the whole run.  "
            f"[{timeouts.PREFLIGHT_TIMEOUT_S:g}; bench and run: {timeouts.BENCH_TIMEOUT_S:g} + --budget; "
            f"isolate: {timeouts.ISOLATE_TIMEOUT_S:g}, which bench --isolate adds; soak: that of bench + --duration]",
        ),
        click.option(
            "--join-timeout",
            type=Seconds(),
            help=f"Time to wait for all nodes to join.  [{timeouts.JOIN_TIMEOUT_S:g}]",
        ),
    ]
)
_node_time = click.option(
    "--timeout", type=Seconds(), help=f"Time limit for the whole run.  [{timeouts.NODE_TIMEOUT_S:g}]"
)
output_format = click.option(
    "--format",
    "format_",
    type=click.Choice(SCREEN_FORMATS, case_sensitive=False),
    default="text",
    help="Format of standard output; github prints GitHub Actions annotations.  [text]",
)
outputs = click.option(
    "--output",
    multiple=True,
    type=FileName(),
    help="Also write the report: .json, .xml (JUnit), .md, .html, .prom, .txt, .csv (of matrix and --try) or "
    "$GITHUB_STEP_SUMMARY; repeatable.",
)
from_file = click.option(
    "--from", "from_", type=FileName(), help="Replay a saved run or a facts file; no node is touched."
)
verbosity = _all(
    [
        click.option("-v", "--verbose", count=True, help="Also show passed checks and all evidence."),
        click.option("-q", "--quiet", is_flag=True, help="No progress on standard error."),
    ]
)
preflight_options = _all([launch_place, _hosts, _expectations, _time, from_file, verbosity])
_slurm_health = _all(
    [
        click.option(
            "--slurm-health",
            is_flag=True,
            help="Drain this node in Slurm after 2 bad of 3 runs; resume it, if drained so, after 3 good ones.",
        ),
        click.option(
            "--dry-run", is_flag=True, help="With --slurm-health: print the change, do not make it."
        ),
        click.option(
            "--max-drained",
            type=WholeNumber(1, 100),
            help="Per cent of the cluster's nodes that --slurm-health may keep drained.  [10]",
        ),
        click.option(
            "--state-dir",
            type=FileName(),
            metavar="DIR",
            help="Where --slurm-health keeps the last results.  [/run/ncclcheck]",
        ),
    ]
)
node_options = _all([_expectations, _node_time, _slurm_health, from_file, verbosity])
_backend = click.option(
    "--backend",
    type=click.Choice(["auto", "nccl", "gloo"], case_sensitive=False),
    help="auto uses nccl if every node has GPUs, gloo if none has.  [auto]",
)
isolate_options = _all(
    [
        click.option("--slower-than", metavar="PCT", help="Least loss that makes a node or link bad.  [10%]"),
        click.option("--size", metavar="SIZE", help="Size of a transfer, at most.  [64M]"),
        click.option(
            "--screen",
            type=WholeNumber(1, 8),
            help="Rounds that test all nodes; more find nodes bad at times.  [1]",
        ),
        click.option("--max-rounds", type=WholeNumber(1, 30), help="Number of rounds, at most.  [9]"),
        click.option(
            "--groups",
            is_flag=True,
            help="If no pair is bad: from how many nodes at once on is it slow? (2, 4, 8 ... nodes)",
        ),
        click.option("--seed", type=WholeNumber(0, 2**31), help="Seed of the pairs.  [random, printed]"),
        _backend,
        click.option(
            "--print",
            "print_",
            type=click.Choice(NODE_LISTS, case_sensitive=False),
            help="Print only this about the bad nodes, for scripts.",
        ),
    ]
)
matrix_options = _all(
    [
        click.option(
            "--full", is_flag=True, help="All pairs, also of more than 64 nodes (a round per node)."
        ),
        click.option("--leaves", is_flag=True, help="Find the leaves only, also of 64 nodes and fewer."),
        click.option(
            "--topology", type=FileName(), help="Slurm's topology file to compare with.  [/etc/slurm]"
        ),
        click.option("--size", metavar="SIZE", help="Size of a transfer, at most.  [64M]"),
        _backend,
        click.option(
            "--print",
            "print_",
            type=click.Choice(HOST_ORDERS, case_sensitive=False),
            help="Print only this about the leaves, for scripts.",
        ),
    ]
)
soak_options = _all(
    [
        click.option("--duration", metavar="TIME", help="How long to measure: 30s, 10m, 2h, 1d.  [1h]"),
        click.option(
            "--ops",
            multiple=True,
            type=NameList(),
            shell_complete=ops,
            help="Collectives, in turns.  [all_reduce]",
        ),
        click.option("--size", metavar="SIZE", help="Size of every collective.  [64M]"),
        click.option("--every", metavar="TIME", help="Length of a block.  [10s]"),
        click.option("--drop", metavar="PCT", help="Least loss of speed that is a finding.  [5%]"),
        click.option("--duty", metavar="PCT", help="Part of the time to measure in.  [100%]"),
        click.option(
            "--state",
            type=FileName(),
            metavar="DIR",
            help="Folder for the blocks, on node 0.  [ncclcheck-soak-TIME]",
        ),
        click.option("--resume", type=FileName(), metavar="DIR", help="Continue the series in this folder."),
        click.option("--until-finding", is_flag=True, help="End at the first drop, stall or flap."),
        _backend,
    ]
)
save = click.option("--save", type=FileName(), help="Save everything that was read and measured, for --from.")
report_options = _all([output_format, outputs, save])
node_report_options = _all(
    [
        click.option(
            "--format",
            "format_",
            type=click.Choice([*SCREEN_FORMATS, *PROTOCOLS], case_sensitive=False),
            default="text",
            help="Format of standard output; npd and nagios print one line and have exit codes of their own.  [text]",
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
mesh = _all(
    [
        click.option(
            "--mesh",
            metavar="DIMS",
            help="Parallel groups, e.g. pp=2,dp=4,tp=8 (the last varies fastest): which of them span nodes?",
        ),
        click.option(
            "--mesh-order",
            metavar="ORDER",
            help="Order of --mesh as Megatron-LM says it, e.g. tp-cp-ep-dp-pp (the first varies fastest).",
        ),
    ]
)
bench_options = _all(
    [
        click.option(
            "--sizes",
            metavar="SIZES",
            shell_complete=sizes,
            help="Sizes: 1M-1G, 1M-1G:4x, 1M-16M:+1M or 8,1K,4M.  [1M-16M]",
        ),
        click.option(
            "--ops",
            multiple=True,
            type=NameList(),
            shell_complete=ops,
            help="Collectives to measure, or 'all'.  [all_reduce,all_gather]",
        ),
        _backend,
        click.option("--dtype", metavar="TYPE", shell_complete=dtypes, help="Element type.  [float32]"),
        click.option(
            "--iters",
            metavar="auto|N",
            help="Timed iterations per size; auto stops once the result has converged.  [auto]",
        ),
        click.option("--warmup", type=WholeNumber(0, 10**6), help="Untimed iterations per size.  [5]"),
        click.option(
            "--budget",
            type=Seconds(),
            help=f"Limit of all measuring.  [{timeouts.BENCH_BUDGET_S:g}; --try: {timeouts.TRY_BUDGET_S:g}]",
        ),
        click.option("--no-verify", is_flag=True, help="Do not verify the received data."),
        click.option("--cuda-graph", is_flag=True, help="Measure replayed CUDA graphs (nccl only)."),
        click.option(
            "--min-busbw",
            multiple=True,
            metavar="RULE",
            help="Exit 4 below this bus bandwidth in GB/s: 300, @1G=300, all_reduce@1G=300; repeatable.",
        ),
        click.option(
            "--baseline",
            type=FileName(),
            help="Exit 4 on a statistically significant slowdown against this report or --save file.",
        ),
        click.option(
            "--tolerance",
            metavar="PCT",
            help="Slowdown against --baseline that is still accepted, in per cent.  [5]",
        ),
        click.option(
            "--as-is",
            is_flag=True,
            help="Measure under the job's own environment, unchanged; a hang is reported as the result.",
        ),
        click.option("--advised", is_flag=True, help="Measure under the advised settings."),
    ]
)
mesh_bench_options = _all(
    [
        mesh,
        click.option(
            "--dims", multiple=True, type=NameList(), help="Measure only these dimensions of --mesh.  [all]"
        ),
        click.option(
            "--mix", is_flag=True, help="All groups of --mesh together as well: one by one, and at once."
        ),
        click.option(
            "--model",
            type=FileName(),
            metavar="FILE",
            help="A config.json: what the model exchanges in the groups of --mesh, in which sizes; not with --ops.",
        ),
        click.option(
            "--batch", type=WholeNumber(1, 10**6), help="Sequences of a micro batch of --model.  [1]"
        ),
        click.option(
            "--sequence", type=WholeNumber(1, 10**8), help="Tokens of a sequence of --model.  [4096]"
        ),
        click.option(
            "--strategy",
            type=click.Choice(["fsdp", "megatron"], case_sensitive=False),
            help="How --model is trained: by layers (fsdp), or in buckets (megatron).  [fsdp]",
        ),
    ]
)
after_bench = click.option(
    "--isolate",
    is_flag=True,
    help="If the benchmark finds something: test pairs of nodes, as `ncclcheck isolate --groups` does.",
)
