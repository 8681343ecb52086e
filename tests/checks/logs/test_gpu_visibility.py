"""NC920 gpu-visibility: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_ordinal() -> None:
    text = (
        "9: torch.AcceleratorError: CUDA error: invalid device ordinal\n"
        "srun: error: z2: task 9: Exited with exit code 1\n"
    )
    assert_cause(text, "gpu-visibility", {"z2", "rank 9"})


def test_none_at_all() -> None:
    text = "[rank1]: RuntimeError: No CUDA GPUs are available\n"
    assert_cause(text, "gpu-visibility", {"rank 1"})
