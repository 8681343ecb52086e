"""NC936 gpu-hardware: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_nvlink() -> None:
    text = (
        "[Tue Mar  4 10:00:00 2025] NVRM: Xid (PCI:0000:4b:00): 74, pid='<unknown>', name=<unknown>, NVL"
        "ink: fatal error detected on link 6\n"
    )
    assert_cause(text, "gpu-hardware")


def test_ecc() -> None:
    text = "h8: [rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    assert_cause(text, "gpu-hardware", {"h8", "rank 3"})
