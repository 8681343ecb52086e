"""Every fault of the table gets the verdict that was written down for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.fault_cases import CASES, FaultCase, assert_verdict, flapping
from tests.lab.launched import run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.further]
LabOf = Callable[..., Lab]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_one_that_was_written_down(lab: LabOf, case: FaultCase) -> None:
    built = lab(case.nodes)
    case.build(built)
    there = [node for node in built.nodes if node.name not in case.absent]
    with flapping(built, case.flaps):
        first = run(built, "preflight", *case.words, nodes=there, env=case.env)[built.nodes[0].name]
    assert_verdict(case, first)
