"""The options of the commands that measure: what, how long, and what counts as slow."""

from __future__ import annotations

import click

from ncclcheck import timeouts
from ncclcheck.cli.completion import dtypes, ops, sizes
from ncclcheck.cli.options import Decorator, together
from ncclcheck.cli.values import FileName, NameList, Seconds, WholeNumber
from ncclcheck.model.formats.choices import HOST_ORDERS, NODE_LISTS

_backend = click.option(
    "--backend",
    type=click.Choice(["auto", "nccl", "gloo"], case_sensitive=False),
    help="auto uses nccl if every node has GPUs, gloo if none has.  [auto]",
)
isolate_options = together(
    [
        click.option(
            "--slower-than",
            metavar="PCT",
            help="Report nodes and links that are slower than the rest by at least this.  [10%]",
        ),
        click.option("--size", metavar="SIZE", help="Largest size of a transfer.  [64M]"),
        click.option(
            "--screen",
            type=WholeNumber(1, 8),
            help="Rounds that test every node; more rounds find intermittent faults.  [1]",
        ),
        click.option("--max-rounds", type=WholeNumber(1, 30), help="Largest number of rounds.  [9]"),
        click.option(
            "--groups",
            is_flag=True,
            help="If no pair is bad, find the number of nodes (2, 4, 8 ...) at which the network becomes slow.",
        ),
        click.option(
            "--seed", type=WholeNumber(0, 2**31), help="Seed for choosing the pairs.  [random; printed]"
        ),
        _backend,
        click.option(
            "--print",
            "print_",
            type=click.Choice(NODE_LISTS, case_sensitive=False),
            help="Print only this list about the bad nodes, for scripts.",
        ),
    ]
)
matrix_options = together(
    [
        click.option(
            "--full", is_flag=True, help="Measure all pairs even of more than 64 nodes (one round per node)."
        ),
        click.option("--leaves", is_flag=True, help="Only find the leaves, even of 64 nodes or fewer."),
        click.option(
            "--topology",
            type=FileName(),
            help="Compare with this topology file of Slurm.  [the one in /etc/slurm]",
        ),
        click.option("--size", metavar="SIZE", help="Largest size of a transfer.  [64M]"),
        _backend,
        click.option(
            "--print",
            "print_",
            type=click.Choice(HOST_ORDERS, case_sensitive=False),
            help="Print only this list of the leaves, for scripts.",
        ),
    ]
)
soak_options = together(
    [
        click.option("--duration", metavar="TIME", help="How long to measure: 30s, 10m, 2h, 1d.  [1h]"),
        click.option(
            "--ops",
            multiple=True,
            type=NameList(),
            shell_complete=ops,
            help="Collectives to measure in turn.  [all_reduce]",
        ),
        click.option("--size", metavar="SIZE", help="Size of each collective.  [64M]"),
        click.option("--every", metavar="TIME", help="Length of a block.  [10s]"),
        click.option("--drop", metavar="PCT", help="Report slowdowns of at least this.  [5%]"),
        click.option("--duty", metavar="PCT", help="Share of the time spent measuring.  [100%]"),
        click.option(
            "--state",
            type=FileName(),
            metavar="DIR",
            help="Folder on node 0 for the results.  [ncclcheck-soak-TIME]",
        ),
        click.option(
            "--resume",
            type=FileName(),
            metavar="DIR",
            help="Continue the soak whose results are in this folder.",
        ),
        click.option("--until-finding", is_flag=True, help="Stop at the first drop, stall or link flap."),
        _backend,
    ]
)
mesh = together(
    [
        click.option(
            "--mesh",
            metavar="DIMS",
            help="The job's parallel dimensions, e.g. pp=2,dp=4,tp=8 (the last varies fastest).",
        ),
        click.option(
            "--mesh-order",
            metavar="ORDER",
            help="Order of the --mesh dimensions as in Megatron-LM, e.g. tp-cp-ep-dp-pp (the first varies fastest).",
        ),
    ]
)


def _measured(usual: str) -> Decorator:
    """Return the options of every benchmark; `usual` is its --budget if none is given."""
    return together(
        [
            click.option(
                "--sizes",
                metavar="SIZES",
                shell_complete=sizes,
                help="Message sizes: 1M-1G, 1M-1G:4x, 1M-16M:+1M or 8,1K,4M.  [1M-16M]",
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
                help=f"Time limit for all measurements.  [{usual}]",
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
                help="Slowdown against --baseline that is accepted.  [5%]",
            ),
            click.option(
                "--as-is",
                is_flag=True,
                help="Measure under the job's own environment, unchanged; a hang is reported as the result.",
            ),
            click.option("--advised", is_flag=True, help="Measure under the advised settings."),
        ]
    )


run_options = _measured(f"{timeouts.BENCH_BUDGET_S:g}")
bench_options = _measured(f"{timeouts.BENCH_BUDGET_S:g}; with --try {timeouts.TRY_BUDGET_S:g}")
mesh_bench_options = together(
    [
        mesh,
        click.option(
            "--dims", multiple=True, type=NameList(), help="Measure only these dimensions of --mesh.  [all]"
        ),
        click.option(
            "--mix",
            is_flag=True,
            help="Also measure the collectives of all groups in sequence and concurrently.",
        ),
        click.option(
            "--model",
            type=FileName(),
            metavar="FILE",
            help="Measure what the model of this config.json exchanges in the groups of --mesh; not with --ops.",
        ),
        click.option(
            "--batch", type=WholeNumber(1, 10**6), help="Sequences per micro-batch of --model.  [1]"
        ),
        click.option(
            "--sequence", type=WholeNumber(1, 10**8), help="Tokens per sequence of --model.  [4096]"
        ),
        click.option(
            "--strategy",
            type=click.Choice(["fsdp", "megatron"], case_sensitive=False),
            help="How --model is trained: layer by layer (fsdp) or in buckets (megatron).  [fsdp]",
        ),
    ]
)
after_bench = click.option(
    "--isolate",
    is_flag=True,
    help="If the benchmark finds something, test pairs of nodes as 'ncclcheck isolate --groups' does.",
)
