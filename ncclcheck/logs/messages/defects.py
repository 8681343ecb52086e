"""Known defects of versions: the table defects.toml, read when first asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table

_NUMBERS = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?")


class Defect(Struct, frozen=True, forbid_unknown_fields=True):
    """A defect, the versions that have it (`first` to `last`), and the thread that reports it."""

    id: str
    what: str
    library: Literal["nccl", "torch"]
    symptom: str
    first: str
    last: str
    fixed: str
    workaround: str
    thread: str
    certainty: Literal["likely", "possible"]

    def has(self, version: str) -> bool:
        """Return True if that version of the library has the defect."""
        found = numbers(version)
        return bool(found) and numbers(self.first) <= found <= numbers(self.last)


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    defect: tuple[Defect, ...]


@cache
def defects() -> tuple[Defect, ...]:
    """Return all known defects."""
    return load_table("ncclcheck.logs.messages", "defects.toml", _Table).defect


def of_versions(nccl: Iterable[str], torch: Iterable[str]) -> Iterator[tuple[Defect, str]]:
    """Yield the defects that one of these versions has, with the version."""
    versions = {"nccl": tuple(nccl), "torch": tuple(torch)}
    for defect in defects():
        version = next((name for name in versions[defect.library] if defect.has(name)), None)
        if version is not None:
            yield defect, version


def numbers(version: str) -> tuple[int, ...]:
    """Return the version as numbers: `2.21.5+cuda12.4` is (2, 21, 5); empty where it has none."""
    match = _NUMBERS.match(version)
    return tuple(int(part or 0) for part in match.groups()) if match else ()
