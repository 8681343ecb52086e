"""What a rule about one kind of checkpoint says, and what the rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import Unread
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.pickle_records import Record
from ncclcheck.model.job.checkpoints import CheckpointFormat

MOST_NEEDED = 200_000  # files of one checkpoint; a name or a saved number may tell any
_MOST_RANKS = 1_000_000


class Need(Struct, frozen=True):
    """A file that a checkpoint needs, and its least size in bytes; `exact`: it has to be just that."""

    name: str
    least_bytes: int = 0
    exact: bool = False


class Lacks(Struct, frozen=True):
    """What a kind's rules say: the names that are missing, what is damaged (name: what), and why that is not all.

    `named_by`: the file beside the checkpoint without which its framework does not find it.
    """

    kind: CheckpointFormat
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    unknown: Missing | None = None
    named_by: str = ""


Rule: TypeAlias = Callable[[Files], Lacks | None]


def unknown_reason(reason: str) -> Missing:
    """Return why a checkpoint cannot be called complete, where more time would not help."""
    return Missing("unsupported", reason)


def compared(kind: CheckpointFormat, files: Files, needs: Iterable[Need]) -> Lacks:
    """Return which of the files are missing or have another size."""
    missing, damaged = [], []
    for need in needs:
        size = files.sizes.get(need.name)
        if size is None:
            missing.append(need.name)
        elif size < need.least_bytes or (need.exact and size != need.least_bytes):
            damaged.append(f"{need.name}: {size} bytes, {need.least_bytes} were recorded")
    return Lacks(kind, tuple(sorted(missing)), tuple(damaged))


def joined(kind: CheckpointFormat, lacks: Iterable[Lacks]) -> Lacks | None:
    """Return what all of them say together; None where there is none."""
    found = list(lacks)
    if not found:
        return None
    return Lacks(
        kind,
        tuple(name for lack in found for name in lack.missing),
        tuple(name for lack in found for name in lack.damaged),
        next((lack.unknown for lack in found if lack.unknown), None),
    )


def too_many(kind: CheckpointFormat) -> Lacks:
    """Return that more files are needed than anybody looks for."""
    why = (
        f"its names, or what is saved in it, tell of more than {MOST_NEEDED:,} files: they are not looked for"
    )
    return Lacks(kind, unknown=unknown_reason(why))


def with_unread(lacks: Lacks, source: str, content: Any) -> Lacks:
    """Add why the file with the number of ranks does not give it: names alone do not make a checkpoint complete."""
    if not isinstance(content, Unread):
        return lacks
    line = f"{source}: {content.reason}"
    if content.is_damaged:
        return replace(lacks, damaged=(*lacks.damaged, line))
    return replace(lacks, unknown=lacks.unknown or unknown_reason(line))


def number(content: Any, name: str) -> int:
    """Return a number from a dictionary or an object's state; 0 where there is none."""
    value = (
        content.get(name)
        if isinstance(content, dict)
        else content.field(name)
        if isinstance(content, Record)
        else None
    )
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_RANKS else 0
