"""Progress: a line that moves on a terminal, plain lines into a file, nothing with --quiet."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

import pytest

from ncclcheck import timeouts
from ncclcheck.cli.live import Lines, points_text, screen
from ncclcheck.measure.remaining import TimeLeft

STANDING = TimeLeft("all_reduce 64M, iteration 12", 3, 8, 14.2)
PROGRAM = """
from ncclcheck.cli.live import screen
from ncclcheck.measure.remaining import TimeLeft
with screen(quiet=False) as shown:
    shown.say("measuring [with] 4 ranks")
    shown.show(TimeLeft("all_reduce 64M, iteration 12", 3, 8, 14.2))
    shown.say("all_reduce 32M: done")
    shown.show(TimeLeft("all_reduce 128M, warm-up", 4, 8, None))
print("the report")
"""


def on_terminal(**environ: str) -> str:
    """What the program writes to a terminal that is its standard error; its standard output is a pipe."""
    own, its = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "100", **environ}
    with os.fdopen(own, "rb", buffering=0) as terminal:
        with os.fdopen(its, "wb", buffering=0) as standard_error:
            ended = subprocess.run(
                [sys.executable, "-c", PROGRAM],
                stderr=standard_error,
                stdout=subprocess.PIPE,
                env=environment,
                timeout=30,
                check=True,
            )
        assert ended.stdout == b"the report\n"
        return b"".join(_pieces(terminal)).decode()


def _pieces(terminal: FileIO) -> Iterator[bytes]:
    """Yield what a terminal still has, which the kernel hands over in pieces; after the last one it fails (EIO)."""
    with suppress(OSError):
        while piece := terminal.read(1 << 16):
            yield piece


def test_on_a_terminal_a_line_moves_and_is_gone_at_the_end() -> None:
    seen = on_terminal(TERM="xterm", NO_COLOR="1")
    assert "ncclcheck: measuring [with] 4 ranks" in seen
    assert "all_reduce 64M, iteration 12 · 3 of 8 points measured, about 14 s left" in seen
    assert "ncclcheck: all_reduce 32M: done" in seen
    assert "all_reduce 128M, warm-up · 4 of 8 points measured" in seen
    assert seen.endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))
    assert "\x1b[3" not in seen  # no colours


def test_a_terminal_that_can_do_nothing_gets_lines() -> None:
    seen = on_terminal(TERM="dumb")
    assert "\x1b" not in seen
    assert "ncclcheck: all_reduce 32M: done" in seen


def test_into_a_file_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    lines = Lines(lambda: now[0])
    lines.show(STANDING)
    now[0] += timeouts.LIVE_LINE_S
    lines.show(STANDING)
    lines.show(STANDING)
    told = capsys.readouterr()
    assert told.err == "ncclcheck: all_reduce 64M, iteration 12: 3 of 8 points measured, about 14 s left\n"
    assert told.out == ""


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with screen(quiet=True) as shown:
        shown.say("a word")
        shown.show(STANDING)
    assert capsys.readouterr() == ("", "")


def test_long_times_are_in_minutes() -> None:
    assert points_text(TimeLeft("x", 0, 2, 150.0)) == "0 of 2 points measured, about 2 min 30 s left"
    assert points_text(TimeLeft("x", 0, 2, None)) == "0 of 2 points measured"
