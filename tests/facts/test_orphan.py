"""A child process ends with the parent that started it, and at once where that is gone already."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

CHILD = "import sys; from ncclcheck.facts.orphan import die_with_parent; die_with_parent(int(sys.argv[1]));"
ENVIRON = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def test_a_child_whose_parent_is_alive_goes_on() -> None:
    argv = [sys.executable, "-c", CHILD + "print('alive')", str(os.getpid())]
    done = subprocess.run(argv, env=ENVIRON, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "alive\n"


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    argv = [sys.executable, "-c", CHILD + "print('alive')", "4194305"]  # above any pid (PID_MAX_LIMIT)
    done = subprocess.run(argv, env=ENVIRON, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_killed_parent_takes_its_child_along() -> None:
    sleeper = CHILD + "import signal; print(__import__('os').getpid(), flush=True); signal.pause()"
    parent = (
        "import os, signal, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {sleeper!r}, str(os.getpid())])\n"
        "signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", parent], env=ENVIRON, stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            child = os.pidfd_open(int(started.stdout.readline()))
        finally:
            started.kill()
    ended, _, _ = select.select([child], [], [], 10)
    os.close(child)
    assert ended
