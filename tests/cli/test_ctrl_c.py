"""Ctrl-C at any moment: exit code 130, no traceback, and a partial report once the facts are read."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow


def _interrupted(
    folder: Path, words: list[str], when_s: float = 0.0, *, once_said: str = ""
) -> tuple[int, str, Path]:
    """Start ncclcheck, interrupt it after so long, once it said that, and return its exit code, words and report."""
    report = folder / f"{when_s}.json"
    errors = folder / f"{when_s}.errors"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "ncclcheck", *words, "--output", str(report)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            cwd=folder,
            start_new_session=True,
            # Where the tests run in the background of a script, SIGINT is ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process,
    ):
        until(lambda: once_said in errors.read_text(errors="replace"), once_said)
        time.sleep(when_s)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        return process.returncode, errors.read_text(errors="replace"), report


def _python_starts_s() -> float:
    """Return what Python takes to start here and now: before that, no program can do anything about Ctrl-C."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import runpy"], check=True)
    return time.monotonic() - began


@pytest.mark.parametrize("when_s", [0.05, 0.1, 0.2, 0.3, 0.5])
def test_ctrl_c_while_the_program_starts_is_no_traceback(tmp_path: Path, when_s: float) -> None:
    words = ["preflight", "--nnodes", "2", "--node-rank", "1", "--master-addr", "192.0.2.1"]
    code, stderr, _ = _interrupted(tmp_path, words, 2 * _python_starts_s() + when_s)
    assert (code, "Traceback" in stderr) == (130, False), stderr


def test_ctrl_c_after_the_facts_leaves_a_partial_report(tmp_path: Path) -> None:
    # Nobody listens there: this node waits for node 0, and reads its facts meanwhile.
    words = ["preflight", "--nnodes", "2", "--node-rank", "1", "--master-addr", "localhost"]
    words += ["--master-port", str(free_port())]
    code, stderr, file = _interrupted(tmp_path, words, 3.0, once_said="trying until it answers")
    assert (code, "Traceback" in stderr) == (130, False), stderr
    report = json.loads(file.read_text())
    assert report["verdict"]["exit_code"] == 130
    assert [node["status"] for node in report["nodes"]][:1] == ["reported"]


def test_ctrl_c_while_nobody_reads_the_report(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    report = tmp_path / "report.json"
    with subprocess.Popen(
        [sys.executable, "-m", "ncclcheck", "preflight", "--format", "json", "--output", str(report)],
        stdout=writer,
        stderr=writer,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        os.close(writer)
        deadline = time.monotonic() + 60
        while not report.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.poll() is None  # what it has to print does not fit into the pipe
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
            os.close(reader)
    assert json.loads(report.read_text())["verdict"]["exit_code"] in (0, 130)
