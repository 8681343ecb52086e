"""Terminals that can do little: the report is there, and no fault of ncclcheck's own."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("term", "further"),
    [
        ("dumb", {}),
        pytest.param("", {}, marks=pytest.mark.further),
        pytest.param("unknown", {}, marks=pytest.mark.further),
        pytest.param("xterm", {"COLUMNS": "1"}, marks=pytest.mark.further),
        pytest.param("xterm", {"COLUMNS": "-3", "LINES": "abc"}, marks=pytest.mark.further),
        pytest.param("dumb", {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "1"}, marks=pytest.mark.further),
    ],
)
def test_a_benchmark_on_such_a_terminal(term: str, further: dict[str, str], tmp_path: Path) -> None:
    words = ["bench", "--no-preflight", "--sizes", "64K", "--ops", "all_reduce", "--budget", "1"]
    env = {**os.environ, **further, "TERM": term, "PYTHONPATH": str(Path.cwd()), "HOME": str(tmp_path)}
    child, screen = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-m", "ncclcheck", *words], env)  # noqa: S606 (the child is our own program)
    shown = b""
    while True:
        try:
            shown += os.read(screen, 65536)
        except OSError:  # EIO: the child has closed it
            break
    _, status = os.waitpid(child, 0)
    os.close(screen)
    assert os.waitstatus_to_exitcode(status) == 0, shown.decode(errors="replace")
    assert b"exit 0" in shown
    assert (b"\x1b[" in shown) == (term not in ("dumb",))
