"""The advice as lines for a Slurm batch script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ncclcheck.advice.fragments.lines import comment, explained
from ncclcheck.advice.fragments.sh import command, on_its_hosts
from ncclcheck.model.report import Advice, Setting

PER_NODE = "NCCLCHECK_PER_NODE"


def render_slurm(advice: Advice) -> str:
    """Lines to put before srun: srun hands the environment of the batch script to every task (--export=ALL).

    They are no arguments of --export, which would cut a value at its commas. The batch script runs on the first node
    only, so values that differ between nodes come as a script that each task is to be started by.
    """
    lines = [comment("in the batch script, before srun (which needs its default, --export=ALL)")]
    lines += explained(advice, _lines)
    by_host = [setting for setting in advice.env if setting.hosts]
    if by_host:
        script = "\n".join([*(on_its_hosts(setting) for setting in by_host), 'exec "$@"'])
        lines.append(comment(f'values differ between nodes: srun sh -c "${PER_NODE}" sh COMMAND...'))
        lines.append(f"{PER_NODE}={shlex.quote(script)}")
    return "\n".join(lines) + "\n"


def _lines(setting: Setting) -> Iterator[str]:
    if not setting.hosts:
        yield command(setting)
