"""What the watcher of a node watches, and how patiently."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ncclcheck.timeouts import WATCH_LOOK_S, WATCH_STACKS_APART_S

_LOOKS_PER_PATIENCE = 12  # as 5 s are of 60 s


class WatchPlan(Struct, frozen=True):
    """The process to watch with its descendants, and how: as the command line says."""

    root: int
    folder: Path
    patience_s: float
    dumps: bool
    pipe_prefix: str = ""
    ras: str = "localhost"  # where NCCL's RAS listens: HOST or HOST:PORT
    is_child: bool = True  # of ours: then nobody else collects how it ended

    @property
    def look_s(self) -> float:
        """Seconds between two looks."""
        return min(WATCH_LOOK_S, self.patience_s / _LOOKS_PER_PATIENCE)

    @property
    def apart_s(self) -> float:
        """Seconds between the two stacks of a rank."""
        return min(WATCH_STACKS_APART_S, self.patience_s / 6)
