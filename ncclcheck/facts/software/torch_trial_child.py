"""The child of torch_trial: imports torch with as much room as its parent will have."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

# What threads and connections of the parent take beside torch.
_BESIDE_BYTES = 512 << 20


def main() -> None:
    """Import torch; the exit code, and what was written to standard error, are the answer."""
    with suppress(OSError):  # if the kernel has to kill a process for its memory, it is this one
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError, ValueError, IndexError):
        if parent_bytes := int(sys.argv[1]):
            _leave_room_for_the_parent(parent_bytes)
    with suppress(ModuleNotFoundError):  # its own words come from the import that is not a trial
        from torch.distributed import TCPStore

        del TCPStore
    os._exit(0)


def _leave_room_for_the_parent(parent_bytes: int) -> None:
    """Lower the limit of addresses by what the parent has more of them than this process."""
    limit, hard = resource.getrlimit(resource.RLIMIT_AS)
    used_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if limit != resource.RLIM_INFINITY:
        left = limit - max(parent_bytes - used_bytes, 0) - _BESIDE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (max(left, used_bytes), hard))
