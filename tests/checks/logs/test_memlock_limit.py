"""NC925 memlock-limit: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_reg_mr() -> None:
    text = (
        "16: s3:5:6 [0] misc/ibvwrap.cc:160 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot "
        "allocate memory\n"
    )
    assert_cause(text, "memlock-limit", {"s3", "rank 16"})
