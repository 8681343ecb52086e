"""The table of workarounds: what holds for every entry. What each does is under test in test_env_harmful."""

from __future__ import annotations

import pytest

from ncclcheck.checks.environment._workarounds import WORKAROUNDS, Workaround
from ncclcheck.nccl.variables.variables import TABLE
from tests.checks.environment.clusters import place_of


@pytest.mark.parametrize("workaround", WORKAROUNDS, ids=lambda one: str(one.name))
def test_an_entry_is_a_variable_that_somebody_reads(workaround: Workaround) -> None:
    assert workaround.name in TABLE
    assert workaround.cost
    assert workaround.severity in {"warning", "info"}


@pytest.mark.parametrize("workaround", WORKAROUNDS, ids=lambda one: str(one.name))
def test_an_empty_value_is_no_workaround(workaround: Workaround) -> None:
    assert not workaround.applies(place_of({workaround.name: ""}), "")


def test_no_value_is_told_twice() -> None:
    for value in ("0", "1", "LOC", "INFO", "Ring"):
        told = [
            workaround.name
            for workaround in WORKAROUNDS
            if workaround.applies(place_of({workaround.name: value}), value)
        ]
        assert len(told) == len(set(told))
