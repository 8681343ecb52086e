"""How many connections node 0 can hold: each process of the run is an open file of this process."""

from __future__ import annotations

import resource
from collections.abc import Callable
from contextlib import suppress

_OTHER_FILES = 512  # beside the connections to the store, and as many again of probes
_found: list[tuple[int, int]] = []  # the limits before they were raised; state of this process


def raise_file_limit(processes: int, warn: Callable[[str], None]) -> None:
    """Raise the soft limit of open files as far as so many processes need it; say where that is not enough.

    It is this process's own limit: `restore_file_limit` puts it back before a command is started.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed_files = 2 * processes + _OTHER_FILES
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed_files:
        raised = needed_files if hard == unlimited else min(needed_files, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            _found.append((soft, hard))
    needed = processes + _OTHER_FILES
    if hard != unlimited and hard < needed:
        warn(
            f"the hard limit of open files is {hard}, and {processes} processes need {needed} on node 0: not all can "
            "join (raise it: ulimit -Hn, LimitNOFILE=, or nofile of limits.conf)"
        )


def file_limits() -> tuple[int, int]:
    """Return the soft and the hard limit that a command started here finds, once they are restored."""
    return _found[0] if _found else resource.getrlimit(resource.RLIMIT_NOFILE)


def restore_file_limit() -> None:
    """Put the limit back that was found."""
    while _found:
        soft, hard = _found.pop()
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
