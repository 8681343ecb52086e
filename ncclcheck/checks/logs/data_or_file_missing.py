"""NC929 data-or-file-missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, exceptions, remarks, troubles
from ncclcheck.model.events import Log, PythonException
from ncclcheck.model.finding import Fix

_OTHERS = frozenset(
    {
        "import", "nccl-symbol", "no-nccl-built", "shm", "name-resolution", "no-libibverbs",
        "address-in-use", "generic-nccl",
    }
)  # fmt: skip


_FILE_CLASS = re.compile(
    r"(?:^|\.)(?:OSError|IOError|EnvironmentError|NotADirectoryError|IsADirectoryError)$"
)
_PATH = re.compile(r"['\"`]b?/?[\w.-]{1,100}/[\w./-]{1,300}['\"`]")
# What a shell says of a directory or program that a launcher named
_OF_A_SHELL = re.compile(
    r"(?:-?\w{0,4}sh|/bin/\w{0,4}sh): (?:line )?(?:\d{1,4}: )?(?:cd: )?\S*/\S*: No such file or directory"
)
_ERRNO = re.compile(r"\[Errno -?\d{1,3}\]")


def is_of_a_file(exception: PythonException) -> bool:
    """Return True for an error of the family of OSError that names a path and no errno, as libraries raise it."""
    return bool(
        _FILE_CLASS.search(exception.class_name)
        and _PATH.search(exception.message)
        and not _ERRNO.search(exception.message)
    )


@cause(
    "NC929",
    "data-or-file-missing",
    "A file or data set is missing",
    explains=("rank-exception", "slow-rank-timeout", "world-size-mismatch", "uneven-inputs"),
    fixes=(
        Fix(
            "mount or copy the data on every node and check the path: dataset, checkpoint and cache directories",
            (
                "ls -l PATH   # on every node",
                "ncclcheck preflight --data PATH --select path-missing,path-differs",
            ),
        ),
    ),
)
def data_or_file_missing(log: Log) -> Iterator[Suspect]:
    """A rank could not open a data set, checkpoint, model or cache because it is missing.

    ## Why it matters
    Often it is missing on one node only, where a mount is absent; that rank ends and the others wait.

    ## How to fix
    Mount or copy the path on every node, or correct it.

    ## Source
    CPython's OSError with errno ENOENT, ESTALE, EACCES; not-found errors of data set and model libraries.
    """
    raised = [
        exception
        for exception in exceptions(log)
        if ("missing-file" in exception.topics or is_of_a_file(exception))
        and not _OTHERS.intersection(exception.topics)
        and "Package" not in exception.class_name
    ]
    named = [
        remark
        for remark in remarks(log, "missing-file")
        if ("NotFoundError" in remark.text and not re.search("(?:Module|Package)NotFound", remark.text))
        or "can't open file" in remark.text
        or (_OF_A_SHELL.match(remark.text) and troubles(log))
    ]
    found = [event for event in (*raised, *(() if raised else named)) if ".so" not in event.text]
    if found:
        yield suspect(
            f"A rank cannot open a file or data set: {found[0].text.strip()[:200]}.",
            found,
            hosts=culprits(log, [event.place for event in found]),
        )
