"""NC511 exception-expired."""

from __future__ import annotations

import pytest

from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.policies import with_policy

TEXT = '{kind} = [\n{{check = "NC604", reason = "ticket 7", until = 2026-06-30}}]\n'


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ignore", "the exception of NC604 (ticket 7) expired on 2026-06-30: it counts again"),
        ("demote", "the demotion of NC604 (ticket 7) expired on 2026-06-30: it counts again"),
        ("require", "the requirement of NC604 (ticket 7) expired on 2026-06-30: it no longer counts"),
    ],
)
def test_a_rule_that_is_over_is_said(kind: str, words: str) -> None:
    found = finding("exception-expired", with_policy(cluster(2), TEXT.format(kind=kind), "2026-07-01"))
    assert (found.severity, found.summary) == ("info", words)
    assert found.evidence[0].source == "site.toml, line 2"


def test_on_its_last_day_a_rule_counts() -> None:
    assert is_silent("exception-expired", with_policy(cluster(2), TEXT.format(kind="ignore"), "2026-06-30"))
    assert run("exception-expired", cluster(2)).outcome == "not_applicable"
