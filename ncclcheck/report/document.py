"""The Report as a JSON document, and the JSON Schema of it."""

from __future__ import annotations

import json

from ncclcheck.model.codec import encode, indented, json_schema
from ncclcheck.model.report import Report

_LARGEST_INDENTED = 32 << 20


def to_json(report: Report) -> str:
    """Return the document with a final newline: indented, or in one line where it is too large to be read by eye."""
    data = encode(report)
    return (data.decode() if len(data) > _LARGEST_INDENTED else indented(data)) + "\n"


def schema_text() -> str:
    """Return the JSON Schema of a report, as shipped in `ncclcheck/report/schema.json`."""
    return json.dumps(json_schema(Report), indent=1) + "\n"
