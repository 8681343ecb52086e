"""The same trouble in the words of several front ends (siblings.txt): a mechanism tells the cause, not one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.logs.rounds import HeldOut, answer, held_out

SIBLINGS = tuple(held_out(Path(__file__).parent / "siblings.txt"))


@pytest.mark.parametrize("log", SIBLINGS, ids=lambda log: log.name)
def test_a_mechanism_tells_the_cause_and_whom(log: HeldOut) -> None:
    given = answer(log)
    assert given.cause in log.causes or log.causes == ("any",)
    assert log.culprits is None or log.culprits <= set(given.hosts)
    assert log.culprits != frozenset() or given.hosts == ()  # nobody is to blame, and nobody is named


def test_there_are_siblings_of_each_kind() -> None:
    assert len(SIBLINGS) >= 45
    assert {"healthy", "undetermined", "any"} <= {cause for log in SIBLINGS for cause in log.causes}
