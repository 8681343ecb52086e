"""The Report as a JSON document, and the JSON Schema of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ncclcheck.model.codec import LARGEST_INDENTED, encode, encode_into, indented, json_schema
from ncclcheck.model.formats.unsafe_letters import safe_json
from ncclcheck.model.report import Report

# Elements of a long list that are encoded at once: 200 kB of nodes stay in the cache of a core.
_TOGETHER = 4


def to_json(report: Report) -> str:
    """Return the document with a final newline: indented, or in one line where it is too large to be read by eye."""
    return "".join(json_parts(report))


def json_parts(report: Report) -> Iterator[str]:
    """Yield that document in parts, so that one of hundreds of megabytes is never in memory as a whole."""
    parts, size = [], 0
    rest = _encoded(report)
    for part in rest:
        parts.append(part)
        size += len(part)
        if size > LARGEST_INDENTED:
            break
    else:
        yield f"{indented(b''.join(parts))}\n"
        return
    yield from (safe_json(part.decode()) for part in parts)
    parts.clear()
    yield from (safe_json(part.decode()) for part in rest)
    yield "\n"


def _encoded(report: Report) -> Iterator[bytes]:
    """Yield the document in one line, as `encode` has it, in parts."""
    opening = b"{"
    for name in report.__struct_fields__:
        value = getattr(report, name)
        yield opening + encode(name) + b":"
        opening = b","
        yield from _elements(value) if isinstance(value, tuple) else (encode(value),)
    yield b"}"


def _elements(values: tuple[object, ...]) -> Iterator[bytes]:
    opening, buffer = b"[", bytearray()  # one buffer: memory of each size anew costs as much as to encode
    for start in range(0, len(values), _TOGETHER):
        encode_into(values[start : start + _TOGETHER], buffer)
        buffer[:1] = opening  # in place of the bracket of this part
        yield bytes(memoryview(buffer)[:-1])
        opening = b","
    yield b"]" if values else b"[]"


def schema_text() -> str:
    """Return the JSON Schema of a report, as shipped in `ncclcheck/report/schema.json`."""
    return json.dumps(json_schema(Report), indent=1) + "\n"
