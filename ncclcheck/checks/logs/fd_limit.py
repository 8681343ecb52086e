"""NC937 fd-limit."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC937",
    "fd-limit",
    "A process reached its limit of open files",
    explains=("rank-exception", "firewall-blocked-ports", "shm-too-small"),
    fixes=(
        Fix(
            "raise the open-file limit: ulimit -n 65536 (nofile in limits.conf, LimitNOFILE for the daemon); "
            "for data loaders torch.multiprocessing.set_sharing_strategy('file_system')",
            (
                "ulimit -n",
                "ncclcheck preflight --select nofile-low",
            ),
        ),
    ),
)
def fd_limit(log: Log) -> Iterator[Suspect]:
    """A process reached its limit of open files.

    ## Why it matters
    Sockets are files: rank 0 needs one or more per rank, data loaders one per shared tensor.

    ## How to fix
    Raise the limit for the user and for the launcher's daemon.

    ## Source
    errno EMFILE and ENFILE; NCCL misc/socket.cc; torch multiprocessing.
    """
    found = remarks(log, "open-files")
    if found:
        yield suspect(
            "The limit of open files (nofile) was reached.",
            found,
            hosts=culprits(log, [remark.place for remark in found[:1]]),
        )
