"""Who ended first and with what, of processes that are not our children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncclcheck.facts.job.deaths import Death, DeathWatch
from ncclcheck.facts.job.rank_processes import RankProcess, stat_fields
from ncclcheck.timeouts import DEATHS_POLL_S

# A parent that collects its children late, as launchers do.
_PARENT = (
    "import subprocess, sys, time\n"
    "children = [subprocess.Popen(['sh', '-c', 'read line; exit 3'], stdin=subprocess.PIPE) for _ in range(2)]\n"
    "print(*(child.pid for child in children), flush=True)\n"
    "sys.stdin.readline()\n"
    "children[0].stdin.write(b'\\n'); children[0].stdin.flush()\n"
    "sys.stdin.read()\n"
)


def test_the_first_death_and_its_exit_code_or_signal_are_seen() -> None:
    watch = DeathWatch()
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        ranks = tuple(RankProcess(rank, pid, stat_fields(pid)[19]) for rank, pid in enumerate(pids))
        watch.follow(ranks)
        watch.follow(ranks)  # known already
        os.kill(pids[1], signal.SIGKILL)
        _until(watch, 1)
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        _until(watch, 2)
        parent.stdin.close()
        watch.close()
    assert [(death.rank, death.words, death.is_failure) for death in watch.deaths] == [
        (1, "was killed by SIGKILL", True),
        (0, "ended with exit code 3", True),
    ]


def test_an_exit_code_that_was_collected_before_is_not_made_up() -> None:
    death = Death(0, 1, 0.0, None)
    assert not death.is_failure
    assert death.words == "ended; its exit code was not seen"
    assert not Death(0, 1, 0.0, 0).is_failure


@pytest.mark.skipif(
    tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 15),
    reason="the kernel forgets the exit code of a process that was collected (Linux 6.15 keeps it)",
)
def test_the_exit_code_of_a_rank_that_a_shell_collects_at_once_is_seen() -> None:
    watch = DeathWatch()
    with subprocess.Popen(["sh", "-c", "sh -c 'read line; exit 7'; cat"], stdin=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        deadline = time.monotonic() + 30
        while not children.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        pid = int(children.read_text())
        watch.follow((RankProcess(0, pid, stat_fields(pid)[19]),))
        time.sleep(DEATHS_POLL_S * 2)  # until the thread waits for it
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        _until(watch, 1)
        watch.close()
    assert watch.deaths[0].words == "ended with exit code 7"


def _until(watch: DeathWatch, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(watch.deaths) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)
