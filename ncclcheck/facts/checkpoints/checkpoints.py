"""Looks into the folders of `--checkpoint`, each in a process of its own: a dead mount holds whoever touches it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.child import run_python_child
from ncclcheck.facts.section import FactsRequest, Section
from ncclcheck.facts.text_files import readable
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.checkpoints import CheckpointFolder

_MODULE = "ncclcheck.facts.checkpoints.checkpoints_child"


def read_checkpoints(paths: Sequence[str], deadline_s: float) -> tuple[CheckpointFolder, ...]:
    """Return each folder, all read at once; one that does not answer in time is Missing "timeout"."""
    started = [(path, start(read_one, path, deadline_s)) for path in paths]
    end = time.monotonic() + deadline_s + timeouts.PATH_DYING_S
    found = []
    for path, reading in started:
        folder = reading.result(end - time.monotonic())
        found.append(CheckpointFolder(readable(path), folder) if isinstance(folder, Missing) else folder)
    return tuple(found)


def read_one(path: str, deadline_s: float) -> CheckpointFolder | Missing:
    """Return the child's report on the folder, within the time."""
    inner_s = max(deadline_s - timeouts.CHECKPOINT_INNER_S, deadline_s / 2)
    child = run_python_child(_MODULE, [path, str(inner_s)], deadline_s=deadline_s)
    if isinstance(child, Missing):
        is_late = child.missing == "timeout"
        return (
            Missing("timeout", f"{readable(path)} did not answer within {deadline_s:g} s")
            if is_late
            else child
        )
    try:
        return decode(child.stdout, CheckpointFolder)
    except DecodeError as error:
        error_text = child.stderr.decode("utf-8", "replace").strip()[-200:] or str(error)[:200]
        return Missing(
            "error", f"{readable(path)}: the process that looked ended with {child.returncode}: {error_text}"
        )


def _read(request: FactsRequest) -> tuple[CheckpointFolder, ...]:
    return read_checkpoints(request.checkpoint_paths, min(timeouts.CHECKPOINT_S, request.parts_s))


CHECKPOINTS = Section(
    {
        "checkpoints": "names and sizes below each `--checkpoint` folder, their metadata, and the ends of files"
    },
    read=_read,
)
