"""Versions in every form they come in."""

from __future__ import annotations

import pytest

from ncclcheck.model.errors import UsageError
from ncclcheck.nccl import versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.28.9", (2, 28, 9)),
        ("2.28", (2, 28, 0)),
        ("2.28.9+cuda12.9", (2, 28, 9)),
        ("(2, 28, 9)", (2, 28, 9)),
        ("22809", (2, 28, 9)),
        ("2708", (2, 7, 8)),
    ],
)
def test_a_version_is_read_from(text: str, expected: versions.Version) -> None:
    assert versions.parse(text) == expected
    assert versions.is_version(text)


@pytest.mark.parametrize("text", ["", "new", "2", "2.x.1", "-2.28.9", "2.99999.1"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="a version looks like"):
        versions.parse(text)
    assert not versions.is_version(text)


def test_only_2_29_inverts_the_subnet_of_comm_id() -> None:
    assert [
        v for v in ("2.28.9", "2.29.2", "2.29.7", "2.30.3") if versions.is_comm_id_inverted(versions.parse(v))
    ] == [
        "2.29.2",
        "2.29.7",
    ]


@pytest.mark.parametrize(
    ("version", "apis"),
    [
        ("2.18.1", (4, 6)), ("2.19.3", (5, 7)), ("2.20.5", (5, 8)), ("2.23.4", (5, 8)), ("2.24.3", (5, 9)),
        ("2.26.2", (6, 10)), ("2.28.3", (6, 11)), ("2.30.7", (6, 12)), ("2.14.3", (4, 6)),
    ],
)  # fmt: skip
def test_the_plugin_apis_of_a_version(version: str, apis: tuple[int, int]) -> None:
    found = versions.at(versions.PLUGIN_APIS, versions.parse(version))
    assert (min(found), max(found)) == apis


def test_the_milestones_are_in_order_and_cover_what_is_known() -> None:
    numbers = [versions.parse(milestone) for milestone in versions.MILESTONES]
    assert numbers == sorted(numbers)
    assert (versions.MILESTONES[0], versions.MILESTONES[-1]) == (versions.OLDEST, versions.NEWEST)
