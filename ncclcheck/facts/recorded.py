"""Reads a recorded machine as if its folder were `/`: nothing of the machine that runs this is in the result."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.network.names import printable_name
from ncclcheck.facts.node_facts import read_all
from ncclcheck.facts.section_registry import all_sections
from ncclcheck.facts.tree import machine
from ncclcheck.model.fact import NOT_IN_A_TREE, Missing
from ncclcheck.model.facts import NodeFacts

_OF_A_RUN = ("launch", "routes", "software", "code", "master")


class RecordedMachine(Struct, frozen=True):
    """A recorded machine: its own name, else that of its folder, and its facts."""

    host: str
    facts: NodeFacts


def read_recorded(root: Path, deadline_s: float = timeouts.RECORDED_S) -> RecordedMachine:
    """Return the machine whose `/` is `root`. What the tree does not tell is Missing. Raises OSError for no folder."""
    here = machine(root)
    readers = [
        (section, partial(section.read_tree, here))
        for section in all_sections()
        if section.read_tree is not None
    ]
    facts = NodeFacts(**{**dict.fromkeys(_OF_A_RUN, NOT_IN_A_TREE), **read_all(readers, deadline_s)})
    folder_name = printable_name(here.root.name) or "recorded"
    return RecordedMachine(folder_name if isinstance(facts.names, Missing) else facts.names.hostname, facts)
