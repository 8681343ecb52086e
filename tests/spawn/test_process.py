"""Children are started without blocking and killed within a bound."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time

from ncclcheck.spawn.process import kill_all, raise_file_limit, read_available, start_process, state_letter

SLEEPER = [sys.executable, "-c", "import sys, time; print(sys.stdin.read()[:5], flush=True); time.sleep(60)"]


def close_pipes(process: object) -> None:
    for pipe in (process.stdout, process.stderr):  # type: ignore[attr-defined]
        pipe.close()


def read_until_something(descriptor: int) -> bytes:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if found := read_available(descriptor):
            return found
        time.sleep(0.01)
    return b""


def test_a_large_document_on_stdin_does_not_block_the_parent() -> None:
    process = start_process(SLEEPER, os.environ, b"hello" + b"x" * (4 << 20))
    assert process.stdout is not None
    assert read_available(process.stdout.fileno()) == b""
    assert read_until_something(process.stdout.fileno()) == b"hello\n"
    assert kill_all([process], 2.0) == []
    close_pipes(process)


def test_a_stopped_child_is_seen_as_stopped_and_killed_all_the_same() -> None:
    process = start_process(SLEEPER, os.environ, b"")
    os.kill(process.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 5
    while state_letter(process.pid) != "T" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_letter(process.pid) == "T"
    began = time.monotonic()
    assert kill_all([process], 20.0) == []
    assert time.monotonic() - began < 10.0  # nobody waited for it to end by itself
    assert process.returncode == -signal.SIGKILL
    close_pipes(process)


def test_grandchildren_die_with_the_group() -> None:
    script = "import subprocess; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"
    process = start_process([sys.executable, "-c", script], os.environ, b"")
    assert process.stdout is not None
    grandchild = int(read_until_something(process.stdout.fileno()))
    assert kill_all([process], 2.0) == []
    deadline = time.monotonic() + 5
    while state_letter(grandchild) not in ("", "Z") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_letter(grandchild) in ("", "Z")
    close_pipes(process)


def test_no_process_has_no_state() -> None:
    assert state_letter(2**22 + 1) == ""


def test_the_limit_of_open_files_rises_as_far_as_it_may() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert raise_file_limit(300) == 256
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(300, hard)
        assert raise_file_limit(100) == min(300, hard)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(300, hard)
        assert hard < 0 or (
            raise_file_limit(hard + 1) and resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
