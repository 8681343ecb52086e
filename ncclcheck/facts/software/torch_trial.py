"""Tries `import torch` in a child first, where it may end the whole process: memory is scarce, or the folder is gone.

The libraries that torch loads end the process where they get no memory (OpenBLAS), or where it has no working folder
(MKL), and the kernel kills a process that takes too much. Then nobody would say why this node is missing.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ncclcheck import timeouts
from ncclcheck.facts.child import ChildResult, run_python_child
from ncclcheck.facts.host.free_memory import free_bytes
from ncclcheck.facts.text_files import read_text
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import FOLDER_GONE

_CHILD = "ncclcheck.facts.software.torch_trial_child"
_SCARCE_BYTES = 2 << 30  # torch with CUDA takes about 1 GiB when it is imported
_SCARCE_ADDRESSES = 64 << 30  # the same of addresses, which CUDA reserves without use
_MOST_TEXT = 200


_one_trial = threading.Lock()  # several threads wait for the one import


def why_not_importable() -> Missing | None:
    """Return None where `import torch` is safe in this process, or nothing speaks against it.

    Missing "unsupported": it ends any process on this node. "denied": there is no room beside ncclcheck's own threads.
    """
    with _one_trial:
        return _tried()


@cache
def _tried() -> Missing | None:
    scarce = ", ".join(_scarce())
    if not scarce or _import_in_child(_addresses_used()) is None:
        return None
    ending = _import_in_child(0)
    if ending is None:
        return Missing("denied", f"there is no room for torch beside ncclcheck's own threads: {scarce}")
    return Missing("unsupported", f"{ending}; {scarce}")


def _import_in_child(parent_bytes: int) -> str | None:
    """Return how a child ended that imports torch, where that is not well; a slow one says nothing."""
    result = run_python_child(_CHILD, [str(parent_bytes)], deadline_s=timeouts.TORCH_IMPORT_S)
    if isinstance(result, Missing):
        return None if result.missing == "timeout" else result.detail
    return None if result.returncode == 0 else _ending(result)


def _scarce() -> Iterator[str]:
    """Yield what is scarce here, and how much of it there is."""
    try:
        os.getcwd()  # noqa: PTH109 (Path.cwd() is the same call)
    except OSError:
        yield FOLDER_GONE
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _SCARCE_ADDRESSES:
        yield f"ulimit -v is {limit >> 20} MiB"
    free = free_bytes()
    if free < _SCARCE_BYTES:
        yield f"{free >> 20} MiB of memory are free"


def _addresses_used() -> int:
    """Return how many bytes of addresses this process has; 0 where /proc does not say."""
    text = read_text(Path("/proc/self/statm"))
    return 0 if isinstance(text, Missing) else int(text.split()[0]) * resource.getpagesize()


def _ending(result: ChildResult) -> str:
    lines = [line.strip() for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
    how = f"signal {-result.returncode}" if result.returncode < 0 else f"exit {result.returncode}"
    return f"{lines[-1][:_MOST_TEXT]} ({how})" if lines else f"it ended with {how}"
