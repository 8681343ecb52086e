"""A deadline is one point in time for everything that happens on the way to it."""

from __future__ import annotations

from ncclcheck.exchange.deadline import Deadline


def test_what_is_left_only_shrinks_and_never_below_nothing() -> None:
    deadline = Deadline(60)
    first, second = deadline.left(), deadline.left()
    assert 59 < second <= first <= 60
    assert Deadline(0).left() == Deadline(-5).left() == 0.0


def test_a_wait_may_be_bounded_further() -> None:
    assert Deadline(60).left(0.3) == 0.3
    assert Deadline(-1).left(0.3) == 0.0


def test_a_deadline_within_another_never_outlasts_it() -> None:
    outer = Deadline(10)
    assert 4 < outer.within(5).left() <= 5
    assert outer.within(3600).left() <= outer.left() + 0.001
    assert Deadline(0).within(5).passed


def test_it_has_passed_once_nothing_is_left() -> None:
    assert Deadline(0).passed
    assert not Deadline(60).passed
