"""The rank that keeps the others waiting is told from the ranks that wait."""

from __future__ import annotations

from ncclcheck.measure.lateness import RankSamples, rank_times, slowest_us

HOSTS = ("node01", "node02", "node03")


def test_the_time_of_an_iteration_is_the_slowest_ranks() -> None:
    assert slowest_us([[1.0, 5.0], [4.0, 2.0]]) == [4.0, 5.0]


def test_a_rank_that_enters_late_spends_less_time_inside() -> None:
    waiting = RankSamples([1000.0] * 5, 0.0)
    late = RankSamples([100.0] * 5, 0.0)
    times = rank_times([waiting, late, waiting], HOSTS)
    assert [time.late_us for time in times] == [0.0, 900.0, 0.0]
    assert times[1].host == "node02"


def test_one_hiccup_does_not_make_a_rank_late() -> None:
    times = rank_times([RankSamples([10.0] * 5, 0.0), RankSamples([10.0, 10.0, 1.0, 10.0, 10.0], 0.0)], HOSTS)
    assert times[1].late_us == 0.0


def test_a_rank_that_stands_still_inside_the_calls_is_late_by_its_own_heartbeat() -> None:
    steady = RankSamples([1000.0] * 4, 8.0)
    pulsed = RankSamples([1000.0] * 4, 2000.0)
    times = rank_times([steady, steady, pulsed], HOSTS)
    assert [time.late_us for time in times] == [2.0, 2.0, 500.0]
    assert [time.stalled_us for time in times] == [2.0, 2.0, 500.0]
