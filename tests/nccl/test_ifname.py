"""NCCL_SOCKET_IFNAME is read as NCCL reads it, and GLOO_SOCKET_IFNAME as Gloo does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.nccl.ifname import MAX_ENTRIES, NamePattern, is_set, parse, parse_gloo


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("eth0", NamePattern(False, False, ("eth0",))),
        ("=eth0,ib0", NamePattern(False, True, ("eth0", "ib0"))),
        ("^docker,lo", NamePattern(True, False, ("docker", "lo"))),
        ("^=eth0,lo", NamePattern(True, True, ("eth0", "lo"))),
        ("=^eth0", NamePattern(False, True, ("^eth0",))),
        ("^docker,^lo", NamePattern(True, False, ("docker", "^lo"))),
        ("eth1:5,,eth0:", NamePattern(False, False, ("eth1", "eth0"))),
        (" eth1", NamePattern(False, False, (" eth1",))),
        (",,", NamePattern(False, False, ())),
        ("^:5", NamePattern(True, False, ())),
    ],
)
def test_a_value_is_split_as_nccl_splits_it(value: str, expected: NamePattern) -> None:
    assert parse(value) == expected


def test_a_prefix_covers_longer_names_and_an_exact_name_does_not() -> None:
    assert parse("eth1").matches("eth10")
    assert not parse("=eth1").matches("eth10")


def test_an_empty_list_covers_everything_and_excludes_everything() -> None:
    assert parse(",,").matches("lo")
    assert not parse("^,").matches("eth0")


def test_only_sixteen_entries_count() -> None:
    pattern = parse(",".join(f"n{number}" for number in range(20)))
    assert pattern.entries == tuple(f"n{number}" for number in range(MAX_ENTRIES))


@pytest.mark.parametrize("value", [None, "", "e", "^", "="])
def test_less_than_two_characters_count_as_unset(value: str | None) -> None:
    assert not is_set(value)


@given(st.text(), st.text())
def test_excluding_keeps_what_listing_drops(value: str, name: str) -> None:
    rest = value.lstrip("^")
    assert parse(rest).matches(name) != parse("^" + rest).matches(name)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, None),
        ("", None),
        ("x", None),
        ("eth0", ("eth0",)),
        ("eth0,ib0", ("eth0", "ib0")),
        ("eth0,", ("eth0",)),
        (",eth0", ("", "eth0")),
        ("^lo", ("^lo",)),
    ],
)
def test_gloo_takes_exact_names_and_drops_only_a_last_empty_one(
    value: str | None, names: tuple[str, ...] | None
) -> None:
    assert parse_gloo(value) == names
