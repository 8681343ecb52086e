"""The Report as a JSON document, read back strictly, and the JSON Schema of it."""

from __future__ import annotations

import json

import msgspec

from ncclcheck.model.codec import decode, encode_pretty, json_schema
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.report import SCHEMA_VERSION, Report

LIMIT_BYTES = 1 << 28


class _Header(msgspec.Struct):
    schema_version: str | None = None


def to_json(report: Report) -> str:
    """The document, indented, with a final newline."""
    return encode_pretty(report) + "\n"


def from_json(text: bytes | str) -> Report:
    """The report in `text`. Raises DecodeError with one sentence when it is none, or of another schema version."""
    version = decode(text, _Header, limit_bytes=LIMIT_BYTES).schema_version
    if version != SCHEMA_VERSION:
        raise DecodeError(f"schema version {version!r}, this ncclcheck reads {SCHEMA_VERSION!r}")
    return decode(text, Report, limit_bytes=LIMIT_BYTES)


def schema_text() -> str:
    """The JSON Schema of a report, as shipped in `ncclcheck/report/schema.json`."""
    return json.dumps(json_schema(Report), indent=1) + "\n"
