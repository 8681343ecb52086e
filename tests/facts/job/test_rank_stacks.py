"""Stacks of a live process by the real py-spy; where it is missing or refused, why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.facts.job import rank_stacks
from ncclcheck.facts.job.rank_stacks import NO_PY_SPY, py_spy, read_stacks
from ncclcheck.measure.watching.stacks import main_stack

_CODE = "import time\n\ndef deeply():\n    time.sleep(600)\n\nprint('ready', flush=True)\ndeeply()\n"


@pytest.mark.slow
def test_the_stack_of_a_process_names_its_file_line_and_function(tmp_path: Path) -> None:
    if py_spy() is None:
        pytest.skip("py-spy is not installed")
    script = tmp_path / "sleeper.py"
    script.write_text(_CODE)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        read = read_stacks([process.pid])
        process.kill()
    if any("tracing needs" in remark for remark in read.remarks):
        pytest.skip(read.remarks[0])
    assert read.remarks == ()
    frames = main_stack(read.documents[process.pid], process.pid)
    assert [(frame.file, frame.line, frame.function) for frame in frames] == [
        (str(script), 4, "deeply"),
        (str(script), 7, "<module>"),
    ]


def test_without_py_spy_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_stacks, "py_spy", lambda: None)
    read = read_stacks([1])
    assert (read.documents, read.remarks) == ({}, (NO_PY_SPY,))


def test_where_tracing_is_refused_it_is_said_how_to_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "py-spy"
    refusing.write_text("#!/bin/sh\necho 'Permission Denied: Try running again with elevated' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(rank_stacks, "py_spy", lambda: str(refusing))
    (remark,) = read_stacks([1]).remarks
    assert "no stack of process 1: Permission Denied" in remark
    assert "CAP_SYS_PTRACE" in remark
