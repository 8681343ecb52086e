"""Looks at the paths a job needs, each in a process of its own that is abandoned when a dead mount holds it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, start
from ncclcheck.facts.child import end_child, python_command, read_child, start_child
from ncclcheck.facts.section import FactsRequest, Section
from ncclcheck.facts.text_files import readable
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import PathFact

_MODULE = "ncclcheck.facts.storage.paths_child"


Purpose: TypeAlias = Literal["data", "code", "shared", "checkpoint"]


class WantedPath(Struct, frozen=True):
    """A path of the command line, and what it is for."""

    path: str
    purpose: Purpose


def read_paths(paths: Sequence[WantedPath], deadline_s: float = timeouts.PATH_S) -> tuple[PathFact, ...]:
    """Return each path, all read at once, after at most `deadline_s` and the second that a process is given to die."""
    started = [(path, start(read_path, path, deadline_s)) for path in paths]
    end = time.monotonic() + deadline_s + timeouts.PATH_DYING_S
    found = []
    for path, reading in started:
        fact = reading.result(end - time.monotonic())
        found.append(_unread(path, fact) if isinstance(fact, Missing) else fact)
    return tuple(found)


def read_path(path: WantedPath, deadline_s: float = timeouts.PATH_S, module: str = _MODULE) -> PathFact:
    """Return the facts of the path within `deadline_s`; late ones are Missing "timeout", and its process is killed.

    A process that survives SIGKILL (uninterruptible sleep on a dead mount) is left behind, and named.
    """
    end = time.monotonic() + deadline_s
    command = python_command(
        module, [path.path, path.purpose, str(timeouts.PATH_LIST_S), str(timeouts.PATH_READ_S)]
    )
    output: dict[int, bytearray] = {}
    try:
        process = start_child(command, None)
    except (OSError, ValueError) as error:
        return _unread(path, missing_for(error))
    ending = "late"
    try:
        ending = read_child(process, output, end)
    finally:
        gone = end_child(process)
    stdout, stderr = (bytes(text) for text in output.values())
    if ending == "exited" and process.returncode == 0:
        why = Missing("absent", "not told of this kind of path")
    elif ending == "late":
        left = "" if gone else f"; process {process.pid}, which looked, survived SIGKILL and was left behind"
        why = Missing("timeout", f"{readable(path.path)} did not answer within {deadline_s:g} s{left}")
    else:
        text = stderr.decode("utf-8", "replace").strip()[-300:]
        why = Missing(
            "error", f"{readable(path.path)}: the process that looked ended with {process.returncode}: {text}"
        )
    return _put_together(path, stdout, why)


def _put_together(path: WantedPath, stdout: bytes, otherwise: Missing) -> PathFact:
    document: dict[str, Any] = json.loads(encode(_unread(path, otherwise)))
    try:
        for line in stdout.splitlines():
            document |= json.loads(line)
        return decode(json.dumps(document), PathFact)
    except (DecodeError, ValueError, TypeError) as error:
        return _unread(path, Missing("error", f"{readable(path.path)}: {str(error)[:200]}"))


def _unread(path: WantedPath, why: Missing) -> PathFact:
    fields = [name for name in PathFact.__struct_fields__ if name not in ("path", "purpose")]
    return PathFact(readable(path.path), path.purpose, **dict.fromkeys(fields, why))


def wanted_paths(request: FactsRequest) -> tuple[WantedPath, ...]:
    """Return the paths to look at, each with its purpose."""
    return (
        *(WantedPath(path, "data") for path in request.data_paths),
        *(WantedPath(path, "code") for path in request.code_paths),
        *(WantedPath(path, "shared") for path in request.shared_paths),
        *(WantedPath(path, "checkpoint") for path in request.checkpoint_paths),
    )


PATHS = Section(
    {
        "paths": "stat(2), statvfs(2), /proc/self/mountinfo, and reading some files, in a child process for each path"
    },
    read=lambda request: read_paths(wanted_paths(request), min(timeouts.PATH_S, request.parts_s)),
)
