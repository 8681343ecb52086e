"""How busy threads and cores are, of the kernel's own counters."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from ncclcheck.exchange.probe.busy import (
    Moment,
    busiest_core,
    busiest_thread,
    core_ticks,
    moment_of,
    sleep_until,
)
from ncclcheck.model.fact import Missing

GONE = Missing("error", "gone")


def test_a_thread_that_works_is_told_from_one_that_waits() -> None:
    done = threading.Event()
    waiting = threading.Thread(target=done.wait, daemon=True)
    waiting.start()
    threads = [threading.current_thread(), waiting]
    before = [moment_of(thread) for thread in threads]
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
    after = [moment_of(thread) for thread in threads]
    done.set()
    working = busiest_thread(before[:1], after[:1])
    idle = busiest_thread(before[1:], after[1:])
    if isinstance(working, Missing):
        pytest.skip(f"this kernel does not tell: {working}")
    assert working > 0.5
    assert isinstance(idle, float)
    assert idle < 0.2
    assert busiest_thread(before, after) == working


def test_a_thread_that_does_not_run_is_not_known() -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    deadline = time.monotonic() + 30
    while Path(
        f"/proc/self/task/{ended.native_id}"
    ).exists():  # the kernel ends it a little later than Python
        assert time.monotonic() < deadline
    moment = moment_of(ended)
    assert isinstance(moment.busy_s, Missing)
    assert "over before" in moment.busy_s.detail
    assert busiest_thread([moment], [moment]) == moment.busy_s


def test_shares_are_of_those_that_are_known_and_never_more_than_all() -> None:
    before = [Moment(10.0, 1.0), Moment(10.0, GONE), Moment(10.0, 5.0)]
    after = [Moment(12.0, 2.0), Moment(12.0, 3.0), Moment(11.0, 9.0)]
    assert busiest_thread(before[:2], after[:2]) == 0.5
    assert busiest_thread(before, after) == 1.0
    assert isinstance(busiest_thread(before[1:2], after[1:2]), Missing)
    assert isinstance(busiest_thread(before[:1], before[:1]), Missing)


def test_the_busiest_core_counts() -> None:
    before, after = ((100, 1000), (500, 1000)), ((105, 1010), (509, 1010))
    assert busiest_core(before, after) == 0.9
    assert isinstance(busiest_core(before, before), Missing)
    assert busiest_core(GONE, after) == GONE
    assert busiest_core(before, GONE) == GONE


def test_the_cores_of_this_machine_have_worked_already() -> None:
    ticks = core_ticks()
    if isinstance(ticks, Missing):
        pytest.skip(f"this machine does not tell: {ticks}")
    assert all(0 <= busy <= total for busy, total in ticks)
    assert any(busy for busy, _ in ticks)


def test_a_moment_that_has_passed_is_not_slept_for() -> None:
    before = time.monotonic()
    sleep_until(before - 5)
    sleep_until(before + 0.01)
    assert 0.01 <= time.monotonic() - before < 5
