"""What the nodes say of one `--checkpoint` folder, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.registry import Answer
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder
from ncclcheck.model.snapshot import Snapshot

_SHOWN = 3


class FolderPlace(Struct, frozen=True):
    """One folder as one node sees it; `checkpoints`: the newest first."""

    host: str
    folder: CheckpointFolder
    checkpoints: tuple[Checkpoint, ...]

    @property
    def newest_complete(self) -> Checkpoint | None:
        """Return the newest checkpoint that is complete."""
        return next((found for found in self.checkpoints if found.complete is True), None)

    def named(self, name: str) -> Checkpoint | None:
        """Return the checkpoint of that name; `last` is also `last.ckpt`."""
        return next(
            (found for found in self.checkpoints if name in (found.name, found.name.partition(".")[0])), None
        )


def folders(snapshot: Snapshot) -> tuple[tuple[FolderPlace, ...], ...]:
    """Return each folder as all nodes see it that could look into it. The n-th of each node is the same one."""
    found: dict[int, list[FolderPlace]] = {}
    for node, told in snapshot.known("checkpoints"):
        for number, folder in enumerate(told):
            if not isinstance(folder.checkpoints, Missing):
                found.setdefault(number, []).append(FolderPlace(node.host, folder, folder.checkpoints))
    return tuple(map(tuple, found.values()))


def unread(snapshot: Snapshot) -> Iterator[Answer]:
    """Yield why a folder was not looked into, or that none was given."""
    known = list(snapshot.known("checkpoints"))
    if known and not any(told for _, told in known):
        yield NotApplicable("no --checkpoint was given")
    for node, told in known:
        for folder in told:
            if isinstance(folder.checkpoints, Missing):
                yield NotKnown(f"{folder.path}: {folder.checkpoints}", (node.host,))


def words(checkpoint: Checkpoint) -> str:
    """Return what a checkpoint lacks, in words."""
    lacks = []
    if checkpoint.missing_count:
        lacks.append(f"without {listed(checkpoint.missing, _SHOWN, count=checkpoint.missing_count)}")
    if checkpoint.damaged_count:
        lacks.append(listed(checkpoint.damaged, _SHOWN, count=checkpoint.damaged_count))
    return "; ".join(lacks)
