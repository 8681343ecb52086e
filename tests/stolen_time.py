"""Time that the host of a virtual machine gave to others: what was measured meanwhile says nothing of the program."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct

_HZ = 100  # USER_HZ of every Linux (time(7))
_STEAL = 8  # the place of it in the line "cpu" (proc_stat(5))
MUCH = 0.01  # of the time of all cores


class Meter(Struct, frozen=True):
    """What the clock and the kernel's account of stolen time said, in seconds."""

    at_s: float
    stolen_s: float
    cores: int

    def share(self) -> float:
        """Of the time of all cores since then, so much was stolen."""
        now = read()
        return (now.stolen_s - self.stolen_s) / max((now.at_s - self.at_s) * self.cores, 1 / _HZ)


def read(stat: Path = Path("/proc/stat")) -> Meter:
    """The account as it is now."""
    lines = stat.read_text().splitlines()
    cores = sum(line.startswith("cpu") for line in lines) - 1
    return Meter(time.monotonic(), int(lines[0].split()[_STEAL]) / _HZ, cores)
