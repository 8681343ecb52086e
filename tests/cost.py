"""What a command costs in processor time, which other load does not add to, beside that of a bare Python here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def processor_s(argv: Sequence[str], times: int = 3) -> float:
    """The least that several runs of a command took, its children's included, in seconds on a core."""
    spent = []
    for _ in range(times):
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=_ROOT
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, argv
        spent.append(usage.ru_utime + usage.ru_stime)
    return min(spent)


def interpreter_s() -> float:
    """What the start and end of a bare Python cost on this machine: the yardstick of the others."""
    return processor_s([sys.executable, "-c", "pass"], times=10)
