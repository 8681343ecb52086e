"""NC919 duplicate-gpu: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_since_2_30() -> None:
    text = "q:1:2 [0] init.cc:900 NCCL WARN Multiple Ranks are using the same GPU 0000:1b:00\n"
    assert_cause(text, "duplicate-gpu", {"q"})


def test_before() -> None:
    text = (
        "[rank3]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
        "[rank3]: Last error:\n"
        "[rank3]: Duplicate GPU detected : rank 3 and rank 2 both on CUDA device 50\n"
    )
    assert_cause(text, "duplicate-gpu")
