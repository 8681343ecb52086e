"""What the nodes say of one `--checkpoint` folder, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.registry import Answer
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder, CheckpointPointer
from ncclcheck.model.snapshot import Snapshot

_SHOWN = 3
_OWN = "."
_NOT_TO_RESUME_FROM = "best"  # a link to the best one


class FolderPlace(Struct, frozen=True):
    """One folder as one node sees it; `checkpoints`: the newest first."""

    host: str
    folder: CheckpointFolder
    checkpoints: tuple[Checkpoint, ...]

    @property
    def rivals(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints of which a job takes one; the folder itself only where there are no others."""
        inside = tuple(found for found in self.checkpoints if found.name != _OWN)
        return inside or self.checkpoints

    @property
    def newest_complete(self) -> Checkpoint | None:
        """Return the newest checkpoint that is complete."""
        return next((found for found in self.rivals if found.complete is True), None)

    @property
    def pointer(self) -> CheckpointPointer | None:
        """Return what names the checkpoint to resume from."""
        naming = (found for found in self.folder.pointers if not found.file.startswith(_NOT_TO_RESUME_FROM))
        return min(naming, key=lambda found: found.is_link, default=None)

    @property
    def resumed(self) -> str:
        """Return the name of the checkpoint that a job resumes from; empty where there is none."""
        if self.pointer is not None:
            return self.pointer.names
        return "" if self.newest_complete is None else self.newest_complete.name

    @property
    def decisive(self) -> tuple[Checkpoint, ...]:
        """Return those that have to be known: the newest, those that pointers name, and the folder itself."""
        named = [self.named(pointer.names) for pointer in self.folder.pointers]
        folder_itself = [found for found in self.checkpoints if found.name == _OWN]
        return tuple(
            dict.fromkeys(
                (*self.rivals[:1], *(found for found in named if found is not None), *folder_itself)
            )
        )

    def named(self, name: str) -> Checkpoint | None:
        """Return the checkpoint of that name; `last` is also `last.ckpt`."""
        return next(
            (found for found in self.checkpoints if name in (found.name, found.name.partition(".")[0])), None
        )


def folders(snapshot: Snapshot) -> tuple[tuple[FolderPlace, ...], ...]:
    """Return each folder as all nodes see it that could look into it."""
    found = []
    for seen in _alike(snapshot):
        places = tuple(
            FolderPlace(host, folder, folder.checkpoints)
            for host, folder in seen.items()
            if not isinstance(folder.checkpoints, Missing)
        )
        if places:
            found.append(places)
    return tuple(found)


def _alike(snapshot: Snapshot) -> list[dict[str, CheckpointFolder]]:
    """Return the folders by host: those of one path, and of other paths (local disks) the n-th of each node."""
    alike: list[tuple[str, dict[str, CheckpointFolder]]] = []
    left: list[tuple[str, CheckpointFolder]] = []
    paths = [{folder.path for folder in folders} for _, folders in snapshot.known("checkpoints")]
    for node, folders in snapshot.known("checkpoints"):
        for folder in folders:
            if sum(folder.path in node_paths for node_paths in paths) > 1:
                _join(alike, node.host, folder, folder.path)
            else:
                left.append((node.host, folder))
    for host, folder in left:
        _join(alike, host, folder, "")
    return [seen for _, seen in alike]


def _join(
    alike: list[tuple[str, dict[str, CheckpointFolder]]], host: str, folder: CheckpointFolder, path: str
) -> None:
    """Add the folder to the first group without the host, of that path or, if it is empty, of any."""
    group = next((seen for shared, seen in alike if host not in seen and path in ("", shared)), None)
    if group is None:
        alike.append((path, {host: folder}))
    else:
        group[host] = folder


def unread(snapshot: Snapshot) -> Iterator[Answer]:
    """Yield why a folder was not looked into, or that none was given."""
    known = list(snapshot.known("checkpoints"))
    if known and not any(folders for _, folders in known):
        yield NotApplicable("no --checkpoint was given")
    for node, folders in known:
        for folder in folders:
            if isinstance(folder.checkpoints, Missing):
                why = str(folder.checkpoints)
                yield NotKnown(why if folder.path in why else f"{folder.path}: {why}", (node.host,))


def not_given(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield the nodes whose command line lacks a folder that others looked into."""
    hosts = [node.host for node, _ in snapshot.known("checkpoints")]
    for seen in _alike(snapshot):
        lacking = tuple(host for host in hosts if host not in seen)
        if lacking:
            path = next(iter(seen.values())).path
            yield NotKnown(f"--checkpoint {path} was given on {len(seen)} of {len(hosts)} nodes", lacking)


def undecided(place: FolderPlace) -> Iterator[NotKnown]:
    """Yield what is not known of the checkpoints from which a job resumes."""
    path, hosts = place.folder.path, (place.host,)
    for found in place.decisive:
        if isinstance(found.complete, Missing):
            where = path if found.name == _OWN else f"{found.name} of {path}"
            yield NotKnown(f"whether {where} is complete: {found.complete.detail or found.complete}", hosts)
    for pointer in place.folder.pointers:
        if pointer.is_there and place.named(pointer.names) is None:
            yield NotKnown(f"{path}/{pointer.file} names {pointer.names}, which was not looked into", hosts)
    if place.folder.cut:
        yield NotKnown(f"whether {path} has a newer checkpoint: {place.folder.cut}", hosts)
    count = place.folder.unknown + place.folder.older
    if count and not (place.checkpoints or place.folder.cut):
        yield NotKnown(f"{path}: nothing in it is a checkpoint of a known kind ({count} entries)", hosts)


def words(checkpoint: Checkpoint) -> str:
    """Return what a checkpoint lacks, in words."""
    lacks = []
    if checkpoint.missing_count:
        lacks.append(f"without {listed(checkpoint.missing, _SHOWN, count=checkpoint.missing_count)}")
    if checkpoint.damaged_count:
        lacks.append(listed(checkpoint.damaged, _SHOWN, count=checkpoint.damaged_count))
    return "; ".join(lacks)
