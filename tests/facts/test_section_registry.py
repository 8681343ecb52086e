"""The sections of facts: each declared once, by the file that reads it."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.facts.section import Section
from ncclcheck.facts.section_registry import all_sections
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts

# What only a run with other nodes knows, or only a container image.
READ_ELSEWHERE = {"launch", "routes", "master", "image"}


class Pair(Struct, frozen=True):
    names: str
    clock: int


def test_every_section_of_a_node_is_read_by_one_reader() -> None:
    declared = [name for section in all_sections() for name in section.sources]
    assert sorted(declared) == sorted(set(NodeFacts.__struct_fields__) - READ_ELSEWHERE)
    assert all(source for section in all_sections() for source in section.sources.values())


def test_sections_that_are_read_together_are_told_apart() -> None:
    pair = Section({"names": "a", "clock": "b"}, read=lambda _: None)
    assert pair.by_name(Pair("n", 1)) == {"names": "n", "clock": 1}
    late = Missing("timeout", "late")
    assert pair.by_name(late) == {"names": late, "clock": late}
    assert Section({"names": "a"}, read=lambda _: None).by_name("n") == {"names": "n"}
