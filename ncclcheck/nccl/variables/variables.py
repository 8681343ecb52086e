"""The table of environment variables: who reads a name, from which version to which, as what, and its default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from ncclcheck.model.formats.tables import load_table
from ncclcheck.nccl.variables.variables_types import Family, Owner, Variable

_Row: TypeAlias = dict[str, str | int | bool]  # the fields of a record that are not its key
_PACKAGE = "ncclcheck.nccl.variables"


def _variables() -> Iterator[Variable]:
    for file in ("nccl.toml", "others.toml"):
        for owner, rows in load_table(_PACKAGE, file, dict[Owner, dict[str, _Row]]).items():
            for name, row in rows.items():
                yield msgspec.convert({"name": name, "owner": owner, **row}, Variable)


def _families() -> Iterator[Family]:
    for prefix, row in load_table(_PACKAGE, "families.toml", dict[str, _Row]).items():
        yield msgspec.convert({"prefix": prefix, **row}, Family)


TABLE: Mapping[str, Variable] = MappingProxyType({variable.name: variable for variable in _variables()})
FAMILIES: tuple[Family, ...] = tuple(_families())
_PREFIXES = tuple(family.prefix for family in FAMILIES)


def lookup(name: str) -> Variable | Family | None:
    """Return the variable of that exact name, else the family of its prefix, else None: no known program reads it."""
    found = TABLE.get(name)
    if found is not None or not name.startswith(_PREFIXES):
        return found
    return next((family for family in FAMILIES if name.startswith(family.prefix)), None)
