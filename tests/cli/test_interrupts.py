"""A block that is finished before Ctrl-C counts."""

import os
import signal
from collections.abc import Iterator

import pytest

from ncclcheck.cli.interrupts import uninterrupted


@pytest.fixture(autouse=True)
def _interrupts_raise() -> Iterator[None]:
    """As where Python starts with the usual handler; a shell without job control has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupted(times: int, done: list[str]) -> None:
    with uninterrupted():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        done.append("written")


def test_an_interrupt_counts_when_the_block_has_ended() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted(1, done)
    assert done == ["written"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_the_block() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted(2, done)
    assert done == []


def test_a_block_without_an_interrupt_just_ends() -> None:
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
