"""Strict JSON in and out of the model, bounded in size, and the JSON Schema of it."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import msgspec

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.unsafe_letters import safe_json

T = TypeVar("T")
LARGEST_INDENTED = 32 << 20
_ENCODER = msgspec.json.Encoder()


def encode(value: object) -> bytes:
    """Return a model value as strict JSON: floats that are no numbers become null (msgspec's rule)."""
    return msgspec.json.encode(value)


def encode_into(value: object, buffer: bytearray) -> None:
    """Make `buffer` hold what `encode` returns. Its memory is used again, which is quicker for large values."""
    _ENCODER.encode_into(value, buffer)


def encode_pretty(value: object) -> str:
    """Return a model value as JSON, indented for people, without a final newline."""
    return indented(encode(value))


def encode_readable(value: object) -> str:
    """Return a model value as JSON: indented, or in one line where it is too large to be read by eye."""
    data = encode(value)
    return safe_json(data.decode()) if len(data) > LARGEST_INDENTED else indented(data)


def indented(data: bytes) -> str:
    """Return JSON indented for people, without a final newline; nothing in it steers a terminal."""
    return safe_json(msgspec.json.format(data, indent=1).decode())


def decode(data: bytes | str, value_type: type[T], *, limit_bytes: int | None = None) -> T:
    """Return the value in `data`, checked field by field.

    Raises DecodeError with one sentence when the text is longer than `limit_bytes`, is no JSON, or has another shape.
    """
    if limit_bytes is not None and len(data) > limit_bytes:
        raise DecodeError(f"{len(data)} bytes, more than the {limit_bytes} that are accepted")
    try:
        return msgspec.json.decode(data, type=value_type, dec_hook=decode_hook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(str(error) or "nested too deeply") from error


def decode_fact(data: bytes | str, value_type: type[T], *, limit_bytes: int | None = None) -> Fact[T]:
    """Return the value in `data`, or the Missing that stands in its place; else as `decode`."""
    fact: Any = Fact
    value: Fact[T] = decode(data, fact[value_type], limit_bytes=limit_bytes)
    return value


def decode_hook(value_type: Any, value: Any) -> Any:
    """Decode a Fact for msgspec: the value, or the Missing in its place."""
    if isinstance(value_type, type) and issubclass(value_type, Fact):
        # All keys, since a value may be a mapping with a key "missing" (there is a Python package of that name).
        if isinstance(value, dict) and "missing" in value and value.keys() <= {"missing", "detail"}:
            return msgspec.convert(value, Missing)
        marker: Any = value_type
        return msgspec.convert(value, marker.value_type, dec_hook=decode_hook)
    raise NotImplementedError(f"no decoder for {value_type!r}")


def json_schema(value_type: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of `value_type`, with every Fact as "the value, or a Missing in its place"."""
    markers: dict[str, Any] = {}

    def fact_schema(marker: type) -> dict[str, Any]:
        markers[marker.__name__] = marker
        return {"anyOf": [{"$ref": f"#/$defs/{marker.__name__}"}, {"$ref": "#/$defs/Missing"}]}

    # A Fact's value type is only known once its marker was seen, and may hold further Facts: repeat until none is new.
    values: dict[str, Any] = {}
    while True:
        schemas, definitions = msgspec.json.schema_components(
            [value_type, Missing, *(markers[name].value_type for name in values)],
            schema_hook=fact_schema,
            ref_template="#/$defs/{name}",
        )
        top, _, *of_values = schemas
        known, values = len(values), dict(zip(values, of_values, strict=True))
        if len(markers) == known:
            break
        values = dict.fromkeys(markers)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": definitions}
    inlined: dict[str, Any] = _inline(schema, values)
    return inlined


def _inline(schema: Any, values: dict[str, Any]) -> Any:
    """Return `schema` with the schema of a Fact's value in the place of every reference to the Fact's marker."""
    if isinstance(schema, list):
        return [_inline(element, values) for element in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in values:
        return _inline(values[name], values)
    # Pythons before 3.13 keep the indentation of a docstring; a published schema does not depend on that.
    return {
        key: inspect.cleandoc(value)
        if key == "description" and isinstance(value, str)
        else _inline(value, values)
        for key, value in schema.items()
    }
