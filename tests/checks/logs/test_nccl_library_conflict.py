"""NC916 nccl-library-conflict: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_undefined_symbol() -> None:
    text = (
        "ImportError: /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: undefined symbo"
        "l: ncclCommSplit\n"
    )
    assert_cause(text, "nccl-library-conflict")


def test_cannot_be_opened() -> None:
    text = "[rank0]: OSError: libnccl.so.2: cannot open shared object file: No such file or directory\n"
    assert_cause(text, "nccl-library-conflict", {"rank 0"})
