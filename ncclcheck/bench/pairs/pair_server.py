"""`python -m ncclcheck.bench.pairs.pair_server`: imports torch once, and then measures each pair in a fresh process.

It reads one PairTask per line of standard input, forks a child for it, and writes "pid RAIL N"; the child writes
"moved ROUND" whenever it advanced, and its PairResult as one line of JSON. A child that hangs is killed by the
agent, and the next one starts at once: torch is imported already.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from functools import partial

from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.model.codec import decode, encode

READY = b"ready\n"
MOVED = b"moved %d\n"  # in that round a part of a transfer went through, or was verified
_PR_SET_PDEATHSIG = 1  # prctl(2)
_LINE_LIMIT_BYTES = 1 << 16
_LONGEST_ERROR = 400


def main() -> None:
    """Serve until standard input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes to standard error
    _die_with_parent()
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    import torch
    import torch.distributed

    torch.set_num_threads(1)  # a pool of threads would not survive the fork
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the children
    os.write(answers, READY)
    while line := sys.stdin.buffer.readline(_LINE_LIMIT_BYTES):
        task = decode(line, PairTask)
        child = os.fork()
        if child == 0:
            _measure(task, answers)
        os.write(answers, b"pid %d %d\n" % (task.rail, child))


def _measure(task: PairTask, answers: int) -> None:
    """Measure in this child, write the result and end without torch's own tear-down, which may hang."""
    from ncclcheck.bench.pairs.pair_transfer import measure_pair

    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        result = measure_pair(task, partial(os.write, answers, MOVED % task.number))
    except Exception as error:  # whatever it was, the agent hears of it
        traceback.print_exc()
        words = " ".join(str(error).split())[:_LONGEST_ERROR]
        result = PairResult(task.number, error=f"{type(error).__name__}: {words}", rail=task.rail)
    sys.stderr.flush()
    os.write(answers, encode(result) + b"\n")
    os._exit(0)


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
