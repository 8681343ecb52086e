"""A process that stood still knows it, and its waits go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from ncclcheck.exchange.awake import AwakeClock
from ncclcheck.timeouts import AWAKE_BEAT_S

_WAITS = """
import sys, time
from ncclcheck.exchange.awake import notice_pauses, standstill_s, still_s
from ncclcheck.exchange.deadline import Deadline
notice_pauses()
whole = Deadline(60.0)
part = whole.within(4.0)
print("begins", flush=True)
sys.stdin.readline()
print(round(still_s(), 1), round(standstill_s(), 1), part.left() > 2.0, whole.left() < 57.0, flush=True)
"""


class _Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def test_a_gap_between_two_beats_is_a_pause() -> None:
    now = _Time()
    clock = AwakeClock(now)
    clock.begin()
    for _ in range(10):
        now.now_s += AWAKE_BEAT_S
        clock.beat()
    assert (round(clock.beat(), 1), clock.still_s) == (101.0, 0.0)
    now.now_s += 15.0
    assert round(clock.beat(), 1) == 101.1
    assert round(clock.still_s, 1) == 14.9


def test_only_a_gap_that_no_load_explains_is_a_standstill() -> None:
    now = _Time()
    clock = AwakeClock(now)
    clock.begin()
    now.now_s += 1.5
    assert (round(clock.still_s, 1), clock.standstill_s) == (1.4, 0.0)
    now.now_s += 12.0
    assert (round(clock.still_s, 1), round(clock.standstill_s, 1)) == (13.3, 11.9)


def test_without_beats_no_pause_is_noticed() -> None:
    now = _Time()
    clock = AwakeClock(now)
    now.now_s += 15.0
    assert (clock.beat(), clock.still_s) == (115.0, 0.0)


def test_a_busy_machine_is_no_pause() -> None:
    now = _Time()
    clock = AwakeClock(now)
    clock.begin()
    now.now_s += 0.4
    clock.beat()
    assert clock.still_s == 0.0


@pytest.mark.slow
def test_a_stopped_process_has_its_waits_left_and_the_whole_goes_on() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(3.5)  # what is measured
        os.kill(process.pid, signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        told = process.stdout.readline().split()
    assert 3.0 <= float(told[0]) <= 5.0
    assert 3.0 <= float(told[1]) <= 5.0
    assert told[2:] == ["True", "True"]
