"""The rank that keeps the others waiting is told from the ranks that wait."""

from __future__ import annotations

from ncclcheck.measure.lateness import RankSamples, SampleBlock, rank_times, slowest_us

HOSTS = ("node01", "node02", "node03")


def test_the_time_of_an_iteration_is_the_slowest_ranks() -> None:
    assert slowest_us([[1.0, 5.0], [4.0, 2.0]]) == [4.0, 5.0]


def test_a_rank_that_enters_late_spends_less_time_inside() -> None:
    waiting = RankSamples([1000.0] * 5, [])
    late = RankSamples([100.0] * 5, [])
    times = rank_times([waiting, late, waiting], HOSTS)
    assert [time.late_us for time in times] == [0.0, 900.0, 0.0]
    assert times[1].host == "node02"


def test_one_hiccup_does_not_make_a_rank_late() -> None:
    times = rank_times([RankSamples([10.0] * 5, []), RankSamples([10.0, 10.0, 1.0, 10.0, 10.0], [])], HOSTS)
    assert times[1].late_us == 0.0


def test_a_rank_that_stands_still_inside_the_calls_is_late_by_its_own_heartbeat() -> None:
    steady = RankSamples([1000.0] * 4, [SampleBlock(4, 8.0, 0.0)])
    pulsed = RankSamples([1000.0] * 4, [SampleBlock(1, 0.0, 0.0), SampleBlock(3, 2000.0, 0.0)])
    times = rank_times([steady, steady, pulsed], HOSTS)
    assert [time.late_us for time in times] == [2.0, 2.0, 500.0]
    assert [time.stalled_us for time in times] == [2.0, 2.0, 500.0]


def test_waiting_for_a_core_is_that_of_a_typical_part() -> None:
    crowded = RankSamples(
        [1000.0] * 6, [SampleBlock(2, 0.0, 800.0), SampleBlock(2, 0.0, 1000.0), SampleBlock(2, 0.0, 90_000.0)]
    )
    (time,) = rank_times([crowded], HOSTS)
    assert (time.waited_us, time.late_us) == (500.0, 0.0)


def test_who_leaves_early_because_it_only_sends_is_not_late() -> None:
    root, leaf = RankSamples([10.0] * 5, []), RankSamples([1000.0] * 5, [])
    assert [time.late_us for time in rank_times([root, leaf], HOSTS, together=False)] == [0.0, 0.0]
