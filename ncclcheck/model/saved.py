"""The document of `--save` and `--from`: a Snapshot with what is needed to make the identical report of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.report import Tool
from ncclcheck.model.snapshot import Snapshot

SavedCommand: TypeAlias = Literal["preflight", "bench", "run", "isolate", "matrix", "soak", "node"]


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    """A run as saved: when it was, how long it took, whether it was interrupted, and all that it saw."""

    schema_version: str
    kind: str  # "ncclcheck-snapshot"
    tool: Tool
    command: SavedCommand
    created: str
    elapsed_s: float
    interrupted: bool
    snapshot: Snapshot


class FactsDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """One node's facts as a document: what `ncclcheck facts` prints, and `--from` takes for a Snapshot of one node."""

    schema_version: str
    host: str
    facts: NodeFacts
