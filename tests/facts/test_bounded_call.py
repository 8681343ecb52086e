"""A function under a deadline ends as its value or as a Missing that says why."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from ncclcheck.facts.bounded_call import start, within
from ncclcheck.model.fact import Missing


def test_the_value_comes_through() -> None:
    assert within(5, divmod, 7, 2) == (3, 1)


def test_a_function_that_blocks_is_left_at_the_deadline() -> None:
    release = threading.Event()
    began = time.monotonic()
    outcome = within(0.1, release.wait)
    assert time.monotonic() - began < 2
    assert isinstance(outcome, Missing)
    assert outcome.missing == "timeout"
    assert outcome.detail.startswith("wait: no answer within 0.1")
    release.set()


def test_each_kind_of_failure_has_its_word(tmp_path: Path) -> None:
    def denied() -> None:
        raise PermissionError("not yours")

    def leaves() -> None:
        sys.exit(3)

    def unsupported() -> None:
        raise OSError(95, "Operation not supported")

    absent = within(5, (tmp_path / "nothing").read_text)
    assert isinstance(absent, Missing)
    assert absent.missing == "absent"
    assert within(5, denied) == Missing("denied", "not yours")
    assert within(5, leaves) == Missing("error", "SystemExit: 3")
    assert within(5, unsupported) == Missing("unsupported", "[Errno 95] Operation not supported")
    assert within(5, int, "x") == Missing("error", "ValueError: invalid literal for int() with base 10: 'x'")


def test_several_started_functions_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3)
    started = [start(meeting.wait, 5) for _ in range(3)]
    assert {one.result(5) for one in started} == {0, 1, 2}


@pytest.mark.parametrize("deadline_s", [0, -1])
def test_a_deadline_that_has_passed_is_a_timeout_not_an_error(deadline_s: float) -> None:
    release = threading.Event()
    outcome = start(release.wait).result(deadline_s)
    assert isinstance(outcome, Missing)
    assert outcome.missing == "timeout"
    release.set()
