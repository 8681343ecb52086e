"""NC923 p2p-broken: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_peer_access() -> None:
    text = "[rank0]: RuntimeError: CUDA error: peer access is not supported between these two devices\n"
    assert_cause(text, "p2p-broken", {"rank 0"})


def test_disabled_between_nvlinks() -> None:
    text = (
        "g:1:2 [0] graph/paths.cc:300 NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. T"
        "his should not be the case given their connectivity, and is probably due to a hardware issue.\n"
    )
    assert_cause(text, "p2p-broken", {"g"})
