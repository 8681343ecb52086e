"""The last results of this node, in a small file that only its owner can have written."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ncclcheck.cli.files import write_atomically
from ncclcheck.cli.slurm_health.decision import KEPT_RESULTS, Result
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.timeouts import HEALTH_HISTORY_S

MOST_BYTES = 4096
SCHEMA = 1
_OPTION = "--state-dir"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")


class History(Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    schema: int
    results: tuple[Result, ...]


def record(folder: str, node: str, result: Result) -> tuple[Result, ...]:
    """Add the result to the node's file and return the last ones, oldest first.

    Results of more than a day ago, or of the future, do not count. Raises UsageError where the folder or the file may
    be somebody else's work: then nothing is changed on the ground of it.
    """
    if _NAME.fullmatch(node) is None:
        raise UsageError(f"--slurm-health: {node!r} is no name of a node")
    _prepare(Path(folder))
    file = Path(folder) / f"slurm-health-{node}.json"
    known = [
        earlier for earlier in _read(file) if result.at_s - HEALTH_HISTORY_S <= earlier.at_s <= result.at_s
    ]
    results = tuple([*known, result][-KEPT_RESULTS:])
    write_atomically(str(file), encode(History(SCHEMA, results)).decode() + "\n", _OPTION, 0o600)
    return results


def _prepare(folder: Path) -> None:
    with suppress(FileExistsError):
        try:
            folder.mkdir(mode=0o700)
        except FileNotFoundError:
            raise UsageError(f"{_OPTION} {folder}: there is no directory {str(folder.parent)!r}") from None
        except FileExistsError:
            raise
        except OSError as error:
            raise UsageError(f"{_OPTION} {folder}: cannot be created: {error.strerror}") from error
    try:
        state = folder.lstat()
    except OSError as error:
        raise UsageError(f"{_OPTION} {folder}: cannot be read: {error.strerror}") from error
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & _OTHERS_WRITE:
        raise UsageError(
            f"{_OPTION} {folder}: expected a directory of this user that nobody else can write to"
        )


def _read(file: Path) -> Sequence[Result]:
    """Return the results; none of a file that is not there or damaged. Raises UsageError for somebody else's file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(f"{_OPTION} {file}: cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as stream:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & _OTHERS_WRITE:
            raise UsageError(f"{_OPTION} {file}: expected a file of this user that nobody else can write to")
        data = stream.read(MOST_BYTES + 1)
    try:
        found = decode(data, History)
    except DecodeError:
        return ()
    return found.results if found.schema == SCHEMA and len(data) <= MOST_BYTES else ()
