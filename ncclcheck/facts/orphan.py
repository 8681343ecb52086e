"""The child's side of a child process: it ends when its parent does."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).

    Where `parent` is already gone, and the signal with it, the process ends here.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
