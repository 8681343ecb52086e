"""Why a rank ended, from the end of what it wrote to standard error."""

from __future__ import annotations

import re

# torch's C++ stack frames and what leads to them (c10/util/Backtrace.cpp, Exception.cpp, 2.2 to 2.13): "frame #0: ...",
# since 2.4 also "#5 c10d::... from ...". They follow the reason, are longer than it, and tell a user nothing.
_FRAMES = re.compile(
    r"\s*(frame )?#\d+:? .*|Exception raised from .*|C\+\+ CapturedTraceback:|\s*<omitting python frames>"
)
# ncclRemoteError, in NCCL's words (`src/init.cc`, ncclGetErrorString, 2.13 and newer) and in torch's (`NCCLUtils.cpp`).
_REMOTE = re.compile(
    r"remote process exited or there was a network error|ncclRemoteError|NCCL communicator was aborted"
)


def without_frames(text: str) -> str:
    """Return the text without C++ stack frames and empty lines: the reason stands before them."""
    lines = (line for line in text.splitlines() if line.strip() and not _FRAMES.fullmatch(line))
    return "\n".join(lines)


# What NCCL or CUDA said was wrong, as torch passes it on (`NCCLUtils.hpp`, `CUDAException.cpp`).
_REASON = re.compile(r"NCCL error|CUDA error")


def last_words(text: str, limit: int) -> str:
    """Return the end of the text without frames, from its last reason on where that stands further up.

    torch's watchdog says a lot after the reason: that it dumps its records, and what may cause such things in general.
    """
    words = without_frames(text)
    reasons = [match.start() for match in _REASON.finditer(words)]
    if not reasons or reasons[-1] >= len(words) - limit:
        return words[-limit:]
    return words[reasons[-1] :][:limit]


# NCCL (`src/include/checks.h`: "Cuda failure 'uncorrectable ECC error encountered'", with a number since 2.22) and
# CUDA through torch: a GPU fails no other rank's call.
_OWN_GPU = re.compile(r"Cuda failure|CUDA error|unhandled cuda error", re.IGNORECASE)


def reason(text: str, limit: int) -> str:
    """Return the last words where they name an error of NCCL or CUDA; empty where they do not."""
    return last_words(text, limit) if _REASON.search(text) else ""


def is_own_gpu(text: str) -> bool:
    """Return whether the text says that a call to this rank's own GPU failed."""
    return _OWN_GPU.search(text) is not None


def is_echo(text: str) -> bool:
    """Return whether the text says that another rank, or the network to it, failed."""
    return _REMOTE.search(text) is not None
