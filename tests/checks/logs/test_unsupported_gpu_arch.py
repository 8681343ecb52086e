"""NC918 unsupported-gpu-arch: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_no_image() -> None:
    text = "[rank2]: RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    assert_cause(text, "unsupported-gpu-arch", {"rank 2"})
