"""The environment that makes evidence of a hang exist: set only where the user has set nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Each row is one thing; where one of its names is set already, all of it stays as the user has it.
_RENAMED = (2, 9)
_OLD = ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_NEW = ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE")
_RECORDER_SIZE = "2000"  # operations; torch's own default from 2.9 on, 0 before


def added_settings(
    environ: Mapping[str, str], folder: Path, torch: tuple[int, ...] | None = None
) -> dict[str, str]:
    """Return the variables to add for a job whose evidence goes to `folder`.

    `torch`: its version; None: not known, or none. Since 2.9 it warns of the old names of the recorder's variables.
    """
    trace, pipe = str(folder / "nccl_trace_rank_"), str(folder / "nccl_pipe_rank_")
    groups = (
        {"TORCH_FR_BUFFER_SIZE": _RECORDER_SIZE, "TORCH_NCCL_TRACE_BUFFER_SIZE": _RECORDER_SIZE},
        {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
        {"TORCH_FR_DUMP_TEMP_FILE": trace, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": trace},
        {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": pipe},
        {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": str(folder / "nccl.%h.%p.log")},
    )
    added: dict[str, str] = {}
    for group in groups:
        if not any(name in environ for name in group):
            added.update(group)
    if torch is not None:
        added = {
            name: value for name, value in added.items() if name not in (_OLD if torch >= _RENAMED else _NEW)
        }
    return added


def torch_version() -> tuple[int, ...] | None:
    """Return major and minor of the torch of this Python's environment, which is not imported."""
    try:
        found = re.match(r"(\d+)\.(\d+)", version("torch"))
    except PackageNotFoundError:
        return None
    return (int(found[1]), int(found[2])) if found else None


def pipe_prefix(environ: Mapping[str, str]) -> str:
    """Return what torch's pipes for a dump on demand are named after, before the rank; "" where there are none."""
    return environ.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "")
