"""`--hosts` and `--hostfile`: which nodes are checked over ssh, and their task."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from ncclcheck.cli.files import read_text
from ncclcheck.facts.kept_environment import REDACTED, is_secret_name, without_secrets
from ncclcheck.launch.hostlist import ListedHost, parse_hostfile, parse_hosts
from ncclcheck.model.errors import UsageError
from ncclcheck.run.options import HeadRequest

# What a job's own launcher would hand on: what NCCL, Gloo and torch read, and where ranks meet.
PASSED_ON = ("NCCL_", "GLOO_", "TORCH_", "MASTER_")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OF_HOSTS = ("ssh", "remote_python", "env")


def head_request(option_values: Mapping[str, Any], environ: Mapping[str, str]) -> HeadRequest | None:
    """Return what to do over ssh, or None without --hosts. Raises UsageError for contradictions."""
    if option_values.get("hosts") is None and option_values.get("hostfile") is None:
        alone = next((name for name in _OF_HOSTS if option_values.get(name)), None)
        if alone is not None:
            raise UsageError(f"{_option(alone)} is for nodes reached over ssh: add --hosts or --hostfile")
        return None
    for excluded in (
        "hostfile" if option_values.get("hosts") is not None else "hosts",
        "meet_in",
        "from_",
        "node_rank",
        "nnodes",
    ):
        if option_values.get(excluded) is not None:
            option = "--hosts" if option_values.get("hosts") is not None else "--hostfile"
            raise UsageError(f"{_option(excluded)} and {option} exclude each other: leave one out")
    hosts = _hosts(option_values, environ)
    return HeadRequest(
        hosts=tuple(host.name for host in hosts),
        targets=tuple(host.target for host in hosts),
        slots=tuple(host.slots for host in hosts),
        ssh=_ssh(option_values.get("ssh")),
        python=option_values.get("remote_python") or sys.executable,
        environment=passed_on(environ, option_values.get("env") or ()),
        folder=os.getcwd(),  # noqa: PTH109 (text)
    )


def _option(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"


def _hosts(option_values: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[ListedHost, ...]:
    if option_values.get("hosts") is None:
        file = option_values["hostfile"]
        return parse_hostfile(read_text(file, "--hostfile"), file)
    if option_values["hosts"].strip().lower() != "slurm":
        return parse_hosts(option_values["hosts"], "--hosts:")
    nodes = environ.get("SLURM_JOB_NODELIST", "")
    if not nodes:
        raise UsageError(
            "--hosts slurm: SLURM_JOB_NODELIST is not set: run it inside an allocation (salloc, sbatch)"
        )
    return parse_hosts(nodes, f"SLURM_JOB_NODELIST={nodes[:60]}:")


def _ssh(command: str | None) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command)) if command is not None else ("ssh",)
    except ValueError as error:
        raise UsageError(f"--ssh {command!r}: {error}") from error
    if not words:
        raise UsageError(f"--ssh {command!r}: expected a command, such as 'ssh -F FILE'")
    return words


def passed_on(environ: Mapping[str, str], asked: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Return the variables to set on every host: those of the job here, and those that were asked for.

    What sounds or looks like a secret never is: a command line is no place for one. Raises UsageError for such a one
    that was asked for, and for what is no variable.
    """
    chosen = {
        name: value
        for name, value in environ.items()
        if name.startswith(PASSED_ON) and _VARIABLE.fullmatch(name) and not _is_secret(name, value)
    }
    for text in asked:
        name, equals, value = text.partition("=")
        if not _VARIABLE.fullmatch(name):
            raise UsageError(f"--env {text[:40]!r}: expected NAME or NAME=VALUE")
        if not equals and name not in environ:
            raise UsageError(f"--env {name}: it is not set here: give --env {name}=VALUE")
        value = value if equals else environ[name]
        if _is_secret(name, value):
            raise UsageError(
                f"--env {name}: this looks like a secret, which a command line would show to others: "
                "set it on the hosts themselves"
            )
        chosen[name] = value
    for name, value in chosen.items():
        if "\n" in value or "\0" in value:
            raise UsageError(
                f"{name} has a line break in its value, which no command line over ssh can carry"
            )
    return chosen


def _is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or without_secrets(value) == REDACTED
