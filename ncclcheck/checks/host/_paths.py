"""What the nodes say of one path, side by side, as the checks of storage compare it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.model.facts import PathFact
from ncclcheck.model.finding import NotApplicable
from ncclcheck.model.snapshot import Snapshot

OPTION = {"data": "--data", "code": "--code", "shared": "--shared-dir", "checkpoint": "--checkpoint"}


class PathPlace(Struct, frozen=True):
    """One path on one node."""

    host: str
    fact: PathFact


class CheckedPath(Struct, frozen=True):
    """A path of the command line with what each node says of it. The n-th of each node is the same one.

    Its name may differ: `--data` may be given as a relative path, or under another name on each node.
    """

    path: str
    option: str
    places: tuple[PathPlace, ...]

    @property
    def words(self) -> str:
        """The path as it was given."""
        return f"{self.option} {self.path}"


def checked_paths(snapshot: Snapshot, *purposes: str) -> tuple[CheckedPath, ...]:
    """Every path with one of those purposes, in the order of the command line."""
    found: dict[tuple[str, int], list[PathPlace]] = {}
    for node, facts in snapshot.known("paths"):
        counts: dict[str, int] = {}
        for fact in facts:
            number = counts[fact.purpose] = counts.get(fact.purpose, 0) + 1
            if fact.purpose in purposes:
                found.setdefault((fact.purpose, number), []).append(PathPlace(node.host, fact))
    return tuple(
        CheckedPath(places[0].fact.path, OPTION[purpose], tuple(places))
        for (purpose, _), places in found.items()
    )


def none_given(snapshot: Snapshot, found: tuple[CheckedPath, ...], option: str) -> Iterator[NotApplicable]:
    """Yield NotApplicable if every node says that no such path was given."""
    if not found and snapshot.nodes and len(list(snapshot.known("paths"))) == len(snapshot.nodes):
        yield NotApplicable(f"no {option} was given")
