"""NC915 nccl-version-mismatch: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_nccl_says_it() -> None:
    text = (
        "x1:1:2 [0] bootstrap.cc:300 NCCL WARN Mismatched NCCL version detected : rank 0 (2.26.2) rank 4"
        " (2.27.3)\n"
    )
    assert_cause(text, "nccl-version-mismatch")


def test_banners_differ() -> None:
    text = (
        "[m1] NCCL version 2.19.3+cuda12.1\n"
        "[m2] NCCL version 2.21.5+cuda12.4\n"
        "[m1] m1:5:8 [0] bootstrap.cc:78 NCCL WARN Message truncated : received 80 bytes instead of 72\n"
    )
    assert_cause(text, "nccl-version-mismatch")
