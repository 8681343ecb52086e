"""NC716 checkpoint-differs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.host._checkpoints import FolderPlace, folders, not_given, undecided, unread
from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.majority import compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC716",
    "checkpoint-differs",
    "All nodes resume from the same checkpoint",
    needs=("checkpoints",),
    nodes=2,
)
def checkpoint_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The checkpoint of each `--checkpoint` folder that a job resumes from is the same on every node.

    It is the one that a file such as `latest` or a link names, else the newest complete one. Folders of one path are
    compared; where the paths differ (local disks), the n-th of each node.

    ## Why it matters
    Ranks that load different steps train different models from the first iteration on, or wait for each other in a
    collective that the others never enter. It happens where the folder is a local disk, or a cache of a filesystem is
    behind.

    ## How to fix
    Let all nodes mount the same filesystem, or copy the checkpoint to the named node. Where every node keeps shards of
    its own on purpose, ignore this check (`--ignore checkpoint-differs`).

    ## Source
    The name of that checkpoint, and a CRC-32 over the names and sizes of its files. A node on which a folder was not
    given is unknown.
    """
    for places in folders(snapshot):
        yield from _resumed(places)
    yield from unread(snapshot)
    yield from not_given(snapshot)
    yield from not_reported(snapshot)


def _resumed(places: tuple[FolderPlace, ...]) -> Iterator[Answer]:
    path = places[0].folder.path
    for place in places:
        yield from undecided(place)
    names = compare((place.host, place.resumed or "none") for place in places)
    if names.differs:
        yield Finding(
            "error",
            f"the checkpoint of {path} to resume from is not the same on all nodes: {sentence(names)}: ranks resume "
            "from different steps",
            names.odd_hosts,
            evidence(names, f"checkpoint of {path} to resume from", "pointers, names and sizes of its files"),
            (Fix("mount the same filesystem on all nodes, or copy the checkpoint", (f"findmnt -T {path}",)),),
        )
        return
    found_by_host = [(place.host, place.named(place.resumed)) for place in places]
    contents = compare(
        (host, found.digest) for host, found in found_by_host if found is not None and found.complete is True
    )
    if contents.differs:
        name = names.groups[0].value
        yield Finding(
            "error",
            f"{name} of {path} has other files, or other sizes, on some nodes: ranks load different states",
            contents.odd_hosts,
            evidence(contents, f"files of {name}", "names and sizes", lambda value: f"{value:08x}"),
            (
                Fix(
                    "copy the checkpoint of a node that is right to the others",
                    ("rsync -an --itemize-changes NODE:PATH/ PATH/",),
                ),
            ),
        )
