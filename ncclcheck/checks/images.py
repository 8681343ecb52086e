"""The image of a snapshot, which is one: what the checks of images share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ncclcheck.checks.registry import Answer
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.image import Image
from ncclcheck.model.snapshot import Node, Snapshot

T = TypeVar("T")


def judged(
    snapshot: Snapshot,
    part: str,
    read: Callable[[Image], Fact[T]],
    judge: Callable[[Node, T], Iterator[Answer]],
) -> Iterator[Answer]:
    """Yield what `judge` answers for that part of each image; NotKnown where it was not read."""
    for node, image in snapshot.known("image"):
        value = read(image)
        if isinstance(value, Missing):
            yield NotKnown(f"{part}: {value}", (node.host,))
        else:
            yield from judge(node, value)
