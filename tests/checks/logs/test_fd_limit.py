"""NC937 fd-limit: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_python() -> None:
    text = "[rank0]: OSError: [Errno 24] Too many open files: '/data/x'\n"
    assert_cause(text, "fd-limit", {"rank 0"})
