"""Programs that hang, will not die, flood us or leave children behind: none of it holds us up."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from ncclcheck.facts.child import OUTPUT_LIMIT_BYTES, ChildResult, run_child, run_python_child
from ncclcheck.model.fact import Missing


def _gone(pid: int) -> bool:
    """True when the process ended, at the latest 5 s from now; nobody need have reaped it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 5)[0])
    finally:
        os.close(descriptor)


def test_output_and_return_code_come_back() -> None:
    result = run_child(["sh", "-c", "cat; echo oops >&2; exit 7"], deadline_s=10, stdin=b"in\0put")
    assert result == ChildResult(7, b"in\0put", b"oops\n")


def test_a_signal_is_a_negative_return_code() -> None:
    result = run_child(["sh", "-c", "kill -SEGV $$"], deadline_s=10)
    assert isinstance(result, ChildResult)
    assert result.returncode == -signal.SIGSEGV


def test_only_the_given_environment_is_passed() -> None:
    result = run_child(["/usr/bin/env"], deadline_s=10, env={"ONLY": "this"})
    assert result == ChildResult(0, b"ONLY=this\n", b"")


def test_a_child_that_ignores_sigterm_and_hangs_is_killed_at_the_deadline(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    began = time.monotonic()
    result = run_child(
        ["sh", "-c", f"trap '' TERM INT HUP; echo $$ > {note}; while :; do sleep 60; done"], deadline_s=0.5
    )
    assert time.monotonic() - began < 3
    assert isinstance(result, Missing)
    assert (result.missing, result.detail) == ("timeout", "sh: no answer within 0.5 s")
    assert _gone(int(note.read_text()))


def test_a_stopped_child_is_killed_at_the_deadline() -> None:
    result = run_child(["sh", "-c", "kill -STOP $$"], deadline_s=0.3)
    assert isinstance(result, Missing)
    assert result.missing == "timeout"


def test_a_grandchild_that_keeps_the_pipes_open_does_not_keep_us_and_is_killed() -> None:
    began = time.monotonic()
    result = run_child(["sh", "-c", "sleep 60 & echo $!"], deadline_s=20)
    assert time.monotonic() - began < 5
    assert isinstance(result, ChildResult)
    assert _gone(int(result.stdout))


def test_a_child_that_closes_its_output_is_still_waited_for() -> None:
    result = run_child(["sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 3"], deadline_s=10)
    assert result == ChildResult(3, b"", b"")


def test_a_flood_is_cut_off_and_not_taken_for_an_answer() -> None:
    result = run_child(["sh", "-c", "yes"], deadline_s=20)
    assert isinstance(result, Missing)
    assert result.missing == "error"
    assert str(OUTPUT_LIMIT_BYTES) in result.detail


def test_output_up_to_the_limit_is_whole() -> None:
    result = run_child(["head", "-c", str(OUTPUT_LIMIT_BYTES), "/dev/zero"], deadline_s=20)
    assert isinstance(result, ChildResult)
    assert len(result.stdout) == OUTPUT_LIMIT_BYTES


def test_a_program_that_is_not_there_or_not_allowed_says_so(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    absent = run_child(["no-such-program-anywhere"], deadline_s=5)
    assert absent == Missing("absent", "no-such-program-anywhere: No such file or directory")
    denied = run_child([str(plain)], deadline_s=5)
    assert isinstance(denied, Missing)
    assert denied.missing == "denied"


def test_no_descriptors_and_no_zombies_remain() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for command in ("true", "sleep 60", "yes"):
        run_child(["sh", "-c", command], deadline_s=0.2, stdin=b"x")
    assert count() == before
    assert not [child for child in psutil.Process().children() if child.name() in ("sh", "sleep", "yes")]


def test_a_python_child_runs_our_module_in_spite_of_the_files_around_it(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "tree").mkdir()
    program = (
        "from ncclcheck.facts.child import run_python_child\n"
        "print(run_python_child('ncclcheck.facts.software.code_child', ['tree', '5'], deadline_s=10))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path[0] = sys.argv[1]\n" + program, root],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "sha256" in done.stdout


def test_a_python_child_dies_with_us_even_when_we_are_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    (tmp_path / "hangs.py").write_text(
        "import os, signal\n"
        "def main():\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"    with open({str(fifo)!r}, 'w') as file: file.write(str(os.getpid()))\n"
        "    signal.pause()\n"
    )
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(__file__).parents[2])!r}]\n"
        "from ncclcheck.facts.child import run_python_child\n"
        "run_python_child('hangs', [], deadline_s=60)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        try:
            child = int(fifo.read_text())  # waits for the child to write it
        finally:
            parent.kill()
    assert _gone(child)


def test_a_python_child_that_fails_is_named_by_its_module() -> None:
    result = run_python_child("ncclcheck.no_such_module", [], deadline_s=10)
    assert isinstance(result, ChildResult)
    assert result.returncode == 1
    assert b"no_such_module" in result.stderr
