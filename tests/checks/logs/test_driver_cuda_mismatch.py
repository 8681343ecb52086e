"""NC917 driver-cuda-mismatch: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_too_old() -> None:
    text = (
        "[n3] RuntimeError: The NVIDIA driver on your system is too old (found version 11070). Please up"
        "date your GPU driver\n"
    )
    assert_cause(text, "driver-cuda-mismatch", {"n3"})


def test_inside_nccl() -> None:
    text = (
        "p:3:4 [0] init.cc:1500 NCCL WARN Cuda failure 35 'CUDA driver version is insufficient for CUDA "
        "runtime version'\n"
    )
    assert_cause(text, "driver-cuda-mismatch")


def test_nvml_differs() -> None:
    text = (
        "Failed to initialize NVML: Driver/library version mismatch\n"
        "RuntimeError: CUDA error: unsupported display driver / cuda driver combination (error 803)\n"
    )
    assert_cause(text, "driver-cuda-mismatch")
