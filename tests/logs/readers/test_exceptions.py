"""Exceptions: which lines are one, and whose fault it is."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.exceptions import kind_of, split


@pytest.mark.parametrize(
    ("line", "name", "message"),
    [
        ("KeyError: 'label'", "KeyError", "'label'"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError", "CUDA out of memory."),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("AssertionError", "AssertionError", ""),
    ],
)
def test_lines_that_end_a_traceback(line: str, name: str, message: str) -> None:
    assert split(line, in_traceback=False) == (name, message)


@pytest.mark.parametrize(
    "line", ["loss: 0.3", "  ValueError: in source", "ncclRemoteError: A call failed", "", "Epoch: 3"]
)
def test_lines_that_do_not(line: str) -> None:
    assert split(line, in_traceback=False) is None


def test_within_a_traceback_a_name_of_any_kind_counts() -> None:
    assert split("my.pkg.Trouble: no", in_traceback=True) == ("my.pkg.Trouble", "no")


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("ValueError", "bad", "ordinary"),
        ("torch.distributed.DistBackendError", "NCCL error in: x", "after-effect"),
        ("RuntimeError", "[pair.cc:553] Connection closed by peer [10.0.0.1]:5", "after-effect"),
        ("x.ChildFailedError", "", "launcher"),
        ("KeyboardInterrupt", "", "after-effect"),
    ],
)
def test_whose_fault(name: str, message: str, kind: str) -> None:
    assert kind_of(name, message) == kind
