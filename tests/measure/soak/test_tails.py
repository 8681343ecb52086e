"""Which rank made an iteration long."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.measure.soak.tails import MOST, RankIdle, longest, tails_of
from ncclcheck.model.benchmarks.soak import SoakTail

USUAL_US = 10.0
CALM = (0.0, 0.0, 0.0)


def longest_of(
    *ranks_us: Sequence[float],
    stalled: Sequence[float] = CALM,
    waited: Sequence[float] = CALM,
    together: bool = True,
) -> SoakTail:
    """The longest tail of three ranks; the first of their calls is the lead-in."""
    idle = [RankIdle(*rank) for rank in zip(stalled, waited, strict=True)]
    return tails_of(ranks_us, idle, USUAL_US, together=together)[0]


def test_a_process_that_stood_still_is_the_culprit() -> None:
    found = longest_of([9, 200, 9], [9, 199, 9], [9, 201, 9], stalled=(0.0, 190.0, 1.0))
    assert found == SoakTail(201, 1, "stopped", 190.0)


def test_who_came_last_was_inside_for_the_shortest_time() -> None:
    assert longest_of([9, 200, 9], [9, 199, 9], [9, 5, 9]) == SoakTail(200, 2, "late", 195)


def test_who_was_held_inside_a_call_before_did_not_come_late() -> None:
    held, others = [9, 3000, 9, 9], [9, 9, 3000, 9]
    assert longest_of(others, others, held) == SoakTail(3000, None, "unknown", 0.0)
    # The one that is held makes its own call as long; nobody else came late to that.
    both = tails_of([others, others, held], [RankIdle()] * 3, USUAL_US)
    assert [tail.rank for tail in both] == [None, None]


def test_of_the_last_call_of_a_batch_only_what_most_waited_for_came_late() -> None:
    assert longest_of([9, 200], [9, 199], [9, 5]).rank == 2
    assert longest_of([9, 9], [9, 9], [9, 200]).rank is None


def test_where_all_were_inside_alike_nobody_is_named() -> None:
    assert longest_of([9, 200, 9], [9, 199, 9], [9, 198, 9], stalled=(0.0, 9.0, 1.0)).how == "unknown"
    assert tails_of([[9, 200, 9]], [RankIdle()], USUAL_US)[0].rank is None


def test_a_rank_that_waits_for_a_core_is_named_where_it_alone_does() -> None:
    calls = [9, 200, 9]
    assert longest_of(calls, calls, calls, waited=(3.0, 150.0, 20.0)) == SoakTail(200, 1, "core", 150.0)
    assert longest_of(calls, calls, calls, waited=(3.0, 150.0, 60.0)) == SoakTail(200, None, "core", 150.0)
    assert longest_of(calls, calls, calls, waited=(120.0, 150.0, 60.0)) == SoakTail(200, None, "core", 150.0)


def test_two_ranks_that_both_waited_long_enough_for_a_core_are_not_told_apart() -> None:
    calls = [9, 200, 9]
    assert longest_of(calls, calls, calls, waited=(500.0, 110.0, 3.0)) == SoakTail(200, None, "core", 500.0)


def test_where_ranks_waited_for_cores_nobody_came_late() -> None:
    calls = [9, 200, 9], [9, 199, 9], [9, 5, 9]
    assert longest_of(*calls, waited=(150.0, 140.0, 3.0)) == SoakTail(200, None, "core", 150.0)
    assert longest_of(*calls, waited=(3.0, 40.0, 3.0)) == SoakTail(200, 2, "late", 195)


def test_in_a_batch_in_which_a_rank_stood_still_no_other_came_late() -> None:
    late, others = [9.0, 300.0, 9.0, 5.0, 9.0], [9.0, 300.0, 9.0, 200.0, 9.0]
    idle = [RankIdle(), RankIdle(290.0), RankIdle()]
    first, second = tails_of([others, others, late], idle, USUAL_US)
    assert (first.rank, first.how) == (1, "stopped")
    assert (second.rank, second.how) == (None, "unknown")


def test_the_longest_are_kept() -> None:
    tails = [SoakTail(float(number), None, "unknown", 0.0) for number in range(100)]
    assert [tail.time_us for tail in longest(tails)] == [99.0 - number for number in range(MOST)]


def test_who_leaves_a_rooted_collective_early_was_not_late() -> None:
    calls = [9, 200, 9], [9, 199, 9], [9, 5, 9]
    assert longest_of(*calls, together=False).rank is None
    assert longest_of(*calls, stalled=(0.0, 190.0, 1.0), together=False).how == "stopped"


def test_one_standstill_explains_one_iteration_of_a_batch() -> None:
    durations = [[9.0, 300.0, 10.0, 200.0], [9.0, 299.0, 10.0, 199.0]]
    first, second = tails_of(durations, [RankIdle(), RankIdle(290.0)], USUAL_US)
    assert (first.time_us, first.rank, first.how) == (300.0, 1, "stopped")
    assert (second.time_us, second.rank, second.how) == (200.0, None, "unknown")
    both = tails_of(durations, [RankIdle(), RankIdle(480.0)], USUAL_US)
    assert [tail.how for tail in both] == ["stopped", "stopped"]
