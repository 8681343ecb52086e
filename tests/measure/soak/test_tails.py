"""Which rank made an iteration long."""

from __future__ import annotations

from ncclcheck.measure.soak.tails import MOST, longest, tail_of, tails_of
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


def test_who_leaves_a_rooted_collective_early_was_not_late() -> None:
    assert tail_of(200.0, [200.0, 199.0, 5.0], [0.0, 0.0, 1.0], together=False).rank is None
    assert tail_of(200.0, [200.0, 199.0, 5.0], [0.0, 190.0, 1.0], together=False).how == "stopped"


def test_one_standstill_explains_one_iteration_of_a_batch() -> None:
    durations = [[300.0, 10.0, 200.0], [299.0, 10.0, 199.0]]
    first, second = tails_of(durations, [0.0, 290.0], 10.0)
    assert (first.time_us, first.rank, first.how) == (300.0, 1, "stopped")
    assert (second.time_us, second.rank, second.how) == (200.0, None, "unknown")
    both = tails_of(durations, [0.0, 480.0], 10.0)
    assert [tail.how for tail in both] == ["stopped", "stopped"]
