"""JSON in and out: strict, bounded, and a Missing in the place of the value that could not be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from ncclcheck.model.bench import TimeUs
from ncclcheck.model.codec import decode, decode_fact, encode, encode_pretty, json_schema
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import with_bench
from tests.builders import cluster


class Thing(Struct, frozen=True, forbid_unknown_fields=True):
    count: Fact[int]
    names: Fact[dict[str, str]]


def test_a_snapshot_survives_the_way_through_json() -> None:
    snapshot = with_bench(cluster(3))
    assert decode(encode(snapshot), Snapshot) == snapshot
    assert decode(encode_pretty(snapshot), Snapshot) == snapshot


def test_a_missing_value_stands_in_the_place_of_the_value() -> None:
    thing = Thing(Missing("denied", "/dev/x"), {"a": "b"})
    assert encode(thing) == b'{"count":{"missing":"denied","detail":"/dev/x"},"names":{"a":"b"}}'
    assert decode(encode(thing), Thing) == thing


def test_a_mapping_may_have_a_key_called_missing() -> None:
    thing = Thing(1, {"missing": "0.1", "numpy": "2"})
    assert decode(encode(thing), Thing) == thing


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nonsense",
        b'{"count": "1", "names": {}}',
        b'{"count": 1}',
        b'{"count": 1, "names": {}, "more": 1}',
        b'{"count": {"missing": "because"}, "names": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_is_no_thing_is_refused_with_a_sentence(text: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text, Thing)
    assert str(caught.value)


def test_a_message_over_the_limit_is_not_even_parsed() -> None:
    with pytest.raises(DecodeError, match="20 bytes, more than the 10 that are accepted"):
        decode(b" " * 20, Thing, limit_bytes=10)


@given(st.binary(max_size=200))
def test_garbage_never_gets_past_the_decoder_as_another_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data, Snapshot)


def test_the_schema_of_a_fact_is_the_value_or_a_missing() -> None:
    schema = json_schema(Thing)
    thing = schema["$defs"]["Thing"]
    assert thing["properties"]["count"] == {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Missing"}]}
    assert not [name for name in schema["$defs"] if name.startswith("Fact")]


def test_a_fact_by_itself_is_the_value_or_what_is_missing() -> None:
    missing = Missing("unsupported", "not here")
    assert decode_fact(encode(missing), TimeUs) == missing
    times = TimeUs(1.0, 1.0, 1.0, 1.0, None, 1.0)
    assert decode_fact(encode(times), TimeUs) == times
    with pytest.raises(DecodeError):
        decode_fact(b"{}", TimeUs)
