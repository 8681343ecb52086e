"""Completion status is read as a number: each has its own meaning, and only some speak for the fabric."""

from __future__ import annotations

import pytest

from ncclcheck.logs.messages.ib_status import STATUSES, status_of
from tests.logs.rounds import explain

LINE = (
    "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.1<0>\n"
    "n1:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4000> with {} opcode=0\n"
)
FORMS = ("status={}", "error {},", "status=IBV_WC_X_ERR({})")


def test_every_status_of_libibverbs_has_one_meaning() -> None:
    assert set(STATUSES) == set(range(22))
    assert len({status.name for status in STATUSES.values()}) == len(STATUSES)
    assert status_of("99") is None
    assert status_of("x") is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (12, "ib-link-or-fabric"),
        (4, "gdr-unavailable"),
        (1, "collective-mismatch"),
        (21, "ib-link-or-fabric"),
    ],
)
def test_the_number_decides_the_cause(form: str, status: int, cause: str) -> None:
    found = explain("job.log", LINE.format(form.format(status)).encode())
    assert found.findings[0].slug == cause
    assert STATUSES[status].means in found.findings[0].summary


@pytest.mark.parametrize("status", [5, 9, 10, 11])
def test_a_number_that_has_several_readings_names_no_cause(status: int) -> None:
    found = explain("job.log", LINE.format(f"status={status}").encode())
    assert found.outcome == "undetermined"
    assert "NCCL's first warning is" in found.findings[0].summary
