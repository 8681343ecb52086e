"""Fixes that checks of several families give."""

from __future__ import annotations

from ncclcheck.model.finding import Fix
from ncclcheck.model.formats.host_words import is_host_word


def leave_out(host: str) -> Fix:
    """Return the fix that leaves the node out; without a command where its name means something else in one."""
    command = (f"srun --exclude={host} ...",) if is_host_word(host) else ()
    return Fix(f"leave {host} out of the job", command)


def compare_paths(to_host: str) -> Fix:
    """Return the fix of a slow path to that node."""
    command = (f"tracepath {to_host}",) if is_host_word(to_host) else ()
    return Fix("compare the routes, cables and switch ports of the two nodes", command)
