"""The table of workarounds: what holds for every entry. What each does is under test in test_env_harmful."""

from __future__ import annotations

import pytest

from ncclcheck.checks.environment._workarounds import WORKAROUNDS, Workaround
from ncclcheck.nccl.variables.variables import TABLE
from tests.checks.environment.clusters import place_of


@pytest.mark.parametrize("one", WORKAROUNDS, ids=lambda one: str(one.name))
def test_an_entry_is_a_variable_that_somebody_reads(one: Workaround) -> None:
    assert one.name in TABLE
    assert one.cost
    assert one.severity in {"warning", "info"}


@pytest.mark.parametrize("one", WORKAROUNDS, ids=lambda one: str(one.name))
def test_an_empty_value_is_no_workaround(one: Workaround) -> None:
    assert not one.applies(place_of({one.name: ""}), "")


def test_no_value_is_told_twice() -> None:
    for value in ("0", "1", "LOC", "INFO", "Ring"):
        told = [one.name for one in WORKAROUNDS if one.applies(place_of({one.name: value}), value)]
        assert len(told) == len(set(told))
