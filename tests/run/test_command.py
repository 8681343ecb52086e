"""How a run ends; the lab tests run whole commands."""

from __future__ import annotations

import pytest

from ncclcheck.model.report import Status, Verdict
from ncclcheck.run.command import _same
from ncclcheck.run.steps.finish import Finish


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [(0, "pass"), (1, "fail"), (4, "fail"), (3, "unknown"), (130, "unknown"), (70, "error")],
)
def test_a_node_reports_the_status_of_node_0s_exit_code(exit_code: int, status: Status) -> None:
    own = Verdict("pass", 0, ("no errors",))
    assert _same(own, Finish(exit_code, ("said by node 0",))) == Verdict(
        status, exit_code, ("said by node 0",)
    )


def test_a_number_that_is_no_exit_code_of_ours_is_an_error() -> None:
    assert _same(Verdict("pass", 0, ()), Finish(99, ())).status == "error"
