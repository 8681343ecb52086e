"""What the table of environment variables says of one name, and what follows from it for one version."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.nccl import versions

Owner: TypeAlias = Literal[
    "NCCL",
    "torch",
    "torchrun",
    "Gloo",
    "TensorPipe",
    "CUDA",
    "UCX",
    "libfabric",
    "aws-ofi-nccl",
    "NCCL plug-in",
    "Google plug-in",
    "SHARP",
    "HPC-X plug-in",
    "nccl-tests",
    "ncclx",
    "RCCL",
    "MSCCL",
    "rdma-core",
    "builds and images",
]
Kind: TypeAlias = Literal[
    "switch",  # NCCL: a number, 0 is off; torch: y/yes/1/t/true or n/no/0/f/false, and anything else is an error
    "number",
    "word",  # one of `values`
    "words",  # a comma list of `values`, all but those after a leading `^`
    "level",  # how far apart: one of `values` in capitals, or an old number
    "interfaces",  # NCCL's list of names: `^`, `=`, prefixes
    "names",  # Gloo's list of exact names
    "address",
    "range",  # addresses in CIDR form
    "path",
    "text",
]


class Variable(Struct, frozen=True, forbid_unknown_fields=True):
    """One variable. `since` and `until`: the first and the last version of its owner that reads it; "": not known.

    `default` is `18; 2.23.4: 20`: 18 at first, 20 from 2.23.4 on. `values` are words, each with its first version where
    it came later: `Tree Ring PAT>=2.23`. `lowest` and `highest` bound what the owner takes as it stands. `source` is a
    file of the owner.
    """

    name: str
    kind: Kind
    source: str
    since: str = ""
    until: str = ""
    default: str = ""
    successor: str = ""
    values: str = ""
    lowest: int | None = None
    highest: int | None = None
    owner: Owner = "NCCL"
    any_case: bool = True  # of a word
    obsolete_since: str = ""  # from this version its owner asks for the successor, and still reads it


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """Names that begin with `prefix` belong to `owner`, and are not looked at one by one."""

    prefix: str
    owner: Owner
    source: str


def is_read(variable: Variable, version: str) -> bool:
    """Return True if `version` of the variable's owner reads it."""
    return not is_too_new(variable, version) and not is_gone(variable, version)


def is_too_new(variable: Variable, version: str) -> bool:
    """Return True if `version` of the owner is older than the first that reads the variable."""
    return bool(variable.since) and versions.parse(version) < versions.parse(variable.since)


def is_gone(variable: Variable, version: str) -> bool:
    """Return True if `version` of the owner is newer than the last that reads the variable."""
    return bool(variable.until) and versions.parse(version) > versions.parse(variable.until)


def default_of(variable: Variable, version: str = versions.NEWEST) -> str:
    """Return the value that the owner's `version` uses where the variable is unset; "" where that is not fixed."""
    value = ""
    for part in variable.default.split(";"):
        since, colon, text = part.strip().partition(": ")
        if not colon:
            value = since
        elif versions.parse(version) >= versions.parse(since):
            value = text
    return value


def values_of(variable: Variable, version: str = versions.NEWEST) -> tuple[str, ...]:
    """Return the words that `version` of the owner knows."""
    known = []
    for value in variable.values.split():
        word, limit, since = value.partition(">=")
        if not limit or versions.parse(version) >= versions.parse(since):
            known.append(word)
    return tuple(known)


def where_from(entry: Variable | Family) -> str:
    """Return the source of an entry: `NCCL src/init.cc`."""
    folder = "src/" if entry.owner == "NCCL" and entry.source.endswith((".cc", ".h")) else ""
    return f"{entry.owner} {folder}{entry.source}"
