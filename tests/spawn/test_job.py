"""The job as a child: how it is started, and how it and we end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from ncclcheck.spawn.job import JobCommand, end_processes, ended_status, exit_code_of, start_job


def _status(*words: str) -> int:
    job = start_job(JobCommand("/bin/sh", ("sh", *words), {"PATH": "/bin:/usr/bin"}))
    deadline = time.monotonic() + 30
    while (status := ended_status(job)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return status


def test_the_exit_code_is_the_job_s_own_and_a_signal_counts_as_in_a_shell() -> None:
    assert exit_code_of(_status("-c", "exit 7")) == 7
    assert exit_code_of(_status("-c", "kill -TERM $$")) == 128 + signal.SIGTERM


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OSError, match="No such file"):
        start_job(JobCommand("/no/such/program", ("x",), {}))


def test_python_s_ignored_signals_are_not_handed_on() -> None:
    mask_of_pipe = 1 << (signal.SIGPIPE - 1)
    script = f"ignored=$(grep SigIgn /proc/$$/status | cut -f2); test $((0x$ignored & {mask_of_pipe})) = 0"
    assert _status("-c", script) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_this_process_ends_as_the_job_did(number: signal.Signals) -> None:
    code = f"from ncclcheck.spawn.job import end_alike; end_alike({int(number)})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -number


def test_processes_that_ignore_sigterm_or_are_stopped_are_ended() -> None:
    deaf = subprocess.Popen(["sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done"], stdout=-1)
    stopped = subprocess.Popen(["sleep", "600"])
    assert deaf.stdout is not None
    deaf.stdout.readline()
    os.kill(stopped.pid, signal.SIGSTOP)
    end_processes([deaf.pid, stopped.pid], 1.0)
    assert deaf.wait(30) == -signal.SIGKILL
    assert stopped.wait(30) == -signal.SIGTERM
    deaf.stdout.close()


def test_a_job_that_somebody_else_has_collected_is_no_success() -> None:
    with subprocess.Popen(["true"]) as job:
        job.wait()
        status = ended_status(job.pid)
    assert status is not None
    assert exit_code_of(status) == 1
