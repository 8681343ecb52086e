"""Standard output and standard error."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.cli.screen import progress, write_error
from tests.cli.command_line import clean_environment, ncclcheck, saved_run


def on_a_terminal(*arguments: str, **environ: str) -> str:
    """What a terminal of 60 columns is sent."""
    primary, secondary = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ncclcheck", *arguments],
        stdin=subprocess.DEVNULL, stdout=secondary, stderr=secondary,
        env=clean_environment(
            **{"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm-256color", "COLUMNS": "60", **environ}
        ),
    )  # fmt: skip
    os.close(secondary)
    received = b""
    while True:
        try:
            part = os.read(primary, 65536)
        except OSError:  # the other end is closed: that is how a terminal ends
            break
        if not part:
            break
        received += part
    os.close(primary)
    process.wait(timeout=20)
    return received.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_and_its_own_width(tmp_path: Path) -> None:
    text = on_a_terminal("preflight", "--from", saved_run(tmp_path / "run.json"))
    assert "\x1b[1m" in text
    assert all(len(line) < 80 for line in text.splitlines() if not line.startswith(("exit", "\x1b")))


def test_no_color_is_respected(tmp_path: Path) -> None:
    text = on_a_terminal("preflight", "--from", saved_run(tmp_path / "run.json"), NO_COLOR="1")
    assert "\x1b" not in text
    assert text.splitlines()[-1].startswith("exit ")


def test_progress_is_one_harmless_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    progress(quiet=False)("node01\x1b[31m joined\nexit 0: fine")
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err == "ncclcheck: node01\\x1b[31m joined\\nexit 0: fine\n"


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    progress(quiet=True)("joined")
    assert capsys.readouterr().err == ""


def test_an_error_stream_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    write_error("nobody hears this")


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_closed_stream_does_not_crash_it(stream: str, tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json")
    script = f'exec "$0" -m ncclcheck preflight --from "$1" {stream}>&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, saved], capture_output=True, text=True, timeout=60, check=False,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[2])),
    )  # fmt: skip
    assert done.returncode in (0, 1, 3)
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncclcheck", "preflight", "--from", saved],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            env=clean_environment(PYTHONPATH=str(Path(__file__).parents[2])),
        )  # fmt: skip
    assert done.returncode == 2
    first, _, report = done.stderr.partition("\n")
    assert first.startswith("ncclcheck: error: standard output cannot be written: No space left on device")
    assert report.splitlines()[-1].startswith("exit 0: ")  # there is no better place left for it


def test_where_only_ascii_can_be_written_the_header_is_still_readable(tmp_path: Path) -> None:
    done = ncclcheck(
        "preflight", "--from", saved_run(tmp_path / "run.json"), environ={"PYTHONIOENCODING": "ascii"}
    )
    assert done.out.splitlines()[0].startswith("ncclcheck 0.1.0 | preflight | 4 nodes | ")
    assert done.out.isascii()
