"""The Report as a JSON document, and the JSON Schema of it."""

from __future__ import annotations

import json

from ncclcheck.model.codec import encode_pretty, json_schema
from ncclcheck.model.report import Report


def to_json(report: Report) -> str:
    """Return the document, indented, with a final newline."""
    return encode_pretty(report) + "\n"


def schema_text() -> str:
    """Return the JSON Schema of a report, as shipped in `ncclcheck/report/schema.json`."""
    return json.dumps(json_schema(Report), indent=1) + "\n"
