"""NC924 nvlink-fabric-service: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_multicast() -> None:
    text = (
        "v:1:2 [5] transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot be performed i"
        "n the present state'\n"
    )
    assert_cause(text, "nvlink-fabric-service", {"v"})


def test_error_802() -> None:
    text = "[rank6]: RuntimeError: CUDA error: system not yet initialized\n"
    assert_cause(text, "nvlink-fabric-service", {"rank 6"})


def test_imex() -> None:
    text = "[n1] n1:1:2 [0] transport/mnnvl.cc:50 NCCL WARN MNNVL failed : IMEX channel not configured\n"
    assert_cause(text, "nvlink-fabric-service")
