"""Every rare fault of the table gets the verdict that was written down for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.lab.fault_cases import assert_verdict
from tests.lab.launched import run
from tests.lab.nodes import Lab
from tests.lab.rare_cases import CASES, RareCase, hold_proxies

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.further]
LabOf = Callable[..., Lab]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_one_that_was_written_down(lab: LabOf, case: RareCase) -> None:
    built = lab(case.nodes, ipv6=case.ipv6)
    case.build(built)
    with ExitStack() as stack:
        hold_proxies(case, built, stack)
        first = run(built, "preflight", *case.words, master=case.master(built) or None, env=case.env)["node1"]
    assert_verdict(case, first)
    if case.fix:
        assert case.fix in first.finding(case.findings[0].slug)["fixes"][0]["text"], str(first.finished)
