"""Which rank made an iteration long."""

from __future__ import annotations

from ncclcheck.measure.soak.tails import MOST, longest, tail_of
from ncclcheck.model.benchmarks.soak import SoakTail


def test_a_process_that_stood_still_is_the_culprit() -> None:
    assert tail_of(200.0, [200.0, 199.0, 201.0], [0.0, 190.0, 1.0]) == SoakTail(200.0, 1, "stopped", 190.0)


def test_who_came_last_was_inside_for_the_shortest_time() -> None:
    assert tail_of(200.0, [200.0, 199.0, 5.0], [0.0, 0.0, 1.0]) == SoakTail(200.0, 2, "late", 195.0)


def test_where_all_were_inside_alike_nobody_is_named() -> None:
    assert tail_of(200.0, [200.0, 199.0, 198.0], [0.0, 9.0, 1.0]).rank is None
    assert tail_of(200.0, [200.0], [0.0]).rank is None


def test_the_longest_are_kept() -> None:
    tails = [SoakTail(float(number), None, "unknown", 0.0) for number in range(100)]
    assert [tail.time_us for tail in longest(tails)] == [99.0 - number for number in range(MOST)]
