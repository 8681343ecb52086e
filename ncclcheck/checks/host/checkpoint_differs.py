"""NC716 checkpoint-differs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.host._checkpoints import FolderPlace, folders, unread
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
    """The newest complete checkpoint of each `--checkpoint` folder is the same on every node.

    ## Why it matters
    Ranks that load different steps train different models from the first iteration on, or wait for each other in a
    collective that the others never enter. It happens where the folder is a local disk, or a cache of a filesystem is
    behind.

    ## How to fix
    Let all nodes mount the same filesystem, or copy the checkpoint to the named node. Where every node keeps shards of
    its own on purpose, ignore this check (`--ignore checkpoint-differs`).

    ## Source
    The name of the newest complete checkpoint, and a CRC-32 over the names and sizes of its files.
    """
    for places in folders(snapshot):
        yield from _newest(places)
    yield from unread(snapshot)
    yield from not_reported(snapshot)


def _newest(places: tuple[FolderPlace, ...]) -> Iterator[Finding]:
    path = places[0].folder.path
    told = [(place.host, place.newest_complete) for place in places]
    names = compare((host, "none" if best is None else best.name) for host, best in told)
    if names.differs:
        yield Finding(
            "error",
            f"the newest complete checkpoint of {path} is not the same on all nodes: {sentence(names)}: ranks resume "
            "from different steps",
            names.odd_hosts,
            evidence(names, f"newest complete checkpoint of {path}", "names and sizes of its files"),
            (Fix("mount the same filesystem on all nodes, or copy the checkpoint", (f"findmnt -T {path}",)),),
        )
        return
    contents = compare((host, best.digest) for host, best in told if best is not None)
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
