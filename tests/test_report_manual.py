"""docs/report.md is what scripts/report_manual makes of the program, and describes every field of a report."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

from ncclcheck.model.facts import NodeFacts
from ncclcheck.report.document import schema_text

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "report.md"


def test_the_page_is_the_one_that_the_program_makes() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "report_manual"))["page"]()
    assert PAGE.read_text(encoding="utf-8") == made, "run scripts/report_manual > docs/report.md"


def test_every_field_of_the_published_schema_is_described_here_or_among_the_facts() -> None:
    described = {
        name
        for page in (PAGE, PAGE.with_name("facts.md"))
        for name in re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    parts = json.loads(schema_text())["$defs"].values()
    named = {name for part in parts for name in part.get("properties", {})}
    assert named - described - {"missing", "detail"} == set(NodeFacts.__struct_fields__) - described


def test_every_link_inside_the_page_has_its_heading() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = {heading.lower() for heading in re.findall(r"^##+ (\w+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\(#(\w+)\)", text)) <= headings
