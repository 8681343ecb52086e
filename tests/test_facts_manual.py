"""docs/facts.md is what scripts/facts_manual makes of the program, and describes every field that is printed."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

from ncclcheck.model.codec import encode
from ncclcheck.model.facts import NodeFacts
from tests.builders import node
from tests.hardware_builders import rdma_cluster

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "facts.md"


def test_the_page_is_the_one_that_the_program_makes() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "facts_manual"))["page"]()
    assert PAGE.read_text(encoding="utf-8") == made, "run scripts/facts_manual > docs/facts.md"


def test_every_section_and_every_field_of_a_healthy_node_is_described() -> None:
    page = PAGE.read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(NodeFacts.__struct_fields__) <= set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    facts = json.loads(encode(node(rdma_cluster(2), "node01").facts))
    named = {"environment", "packages", "namespaces", "settings", "before", "after"}  # names are values there

    def names(value: Any) -> set[str]:
        if isinstance(value, list):
            return {name for one in value for name in names(one)}
        if not isinstance(value, dict):
            return set()
        inner = [names(one) for name, one in value.items() if name not in named]
        return set(value).union(*inner)

    assert names(facts) - described - {"missing", "detail"} == set(NodeFacts.__struct_fields__) - described
