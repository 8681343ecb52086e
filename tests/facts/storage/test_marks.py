"""Marks in real folders: seen by others, told when they cannot be, and always removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ncclcheck.facts.storage.marks import Mark
from ncclcheck.model.fact import Missing


def until_empty(folder: Path) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if not list(folder.iterdir()):
            return True
        threading.Event().wait(0.02)
    return False


def test_two_marks_in_one_folder_see_each_other_and_are_removed(tmp_path: Path) -> None:
    marks = [Mark(str(tmp_path), f".mark-{number}", f"content {number}", 30.0) for number in (1, 2)]
    assert [mark.written(10.0) for mark in marks] == [None, None]
    wanted = {".mark-1": "content 1", ".mark-2": "content 2"}
    assert set(marks[0].seen(wanted, 5.0)) == set(wanted)  # type: ignore[arg-type]
    assert set(marks[1].seen(wanted, 5.0)) == set(wanted)  # type: ignore[arg-type]
    assert [mark.close() for mark in marks] == ["", ""]
    assert list(tmp_path.iterdir()) == []


def test_a_mark_elsewhere_or_with_other_content_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / ".mark-2").write_text("of somebody else")
    mark = Mark(str(tmp_path), ".mark-1", "mine", 30.0)
    assert mark.written(10.0) is None
    assert mark.seen({".mark-1": "mine", ".mark-2": "yours", ".mark-3": "x"}, 0.2) == (".mark-1",)
    assert mark.close() == ""
    assert [path.name for path in tmp_path.iterdir()] == [".mark-2"]


def test_a_file_that_is_there_already_is_neither_written_nor_removed(tmp_path: Path) -> None:
    (tmp_path / ".mark").write_text("of somebody else")
    mark = Mark(str(tmp_path), ".mark", "mine", 30.0)
    failed = mark.written(10.0)
    assert isinstance(failed, Missing)
    assert mark.close() == ""
    assert (tmp_path / ".mark").read_text() == "of somebody else"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    mark = Mark(str(tmp_path / "gone"), ".mark", "mine", 30.0)
    failed = mark.written(10.0)
    assert isinstance(failed, Missing)
    assert (failed.missing, "No such file" in failed.detail) == ("absent", True)
    assert mark.close() == ""


def test_a_mark_goes_when_its_time_is_over(tmp_path: Path) -> None:
    mark = Mark(str(tmp_path), ".mark", "mine", 0.5)
    assert mark.written(10.0) is None
    assert until_empty(tmp_path)
    assert mark.close() == ""


@pytest.mark.parametrize("signal", ["KILL", "TERM"])
def test_a_mark_goes_when_the_one_who_left_it_is_killed(tmp_path: Path, signal: str) -> None:
    program = (
        "import os, signal, sys\n"
        "from ncclcheck.facts.storage.marks import Mark\n"
        f"mark = Mark({str(tmp_path)!r}, '.mark', 'mine', 60.0)\n"
        "assert mark.written(10.0) is None\n"
        f"os.kill(os.getpid(), signal.SIG{signal})\n"
    )
    root = Path(__file__).parents[3]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, timeout=30, check=False)
    assert done.returncode < 0
    assert until_empty(tmp_path)
