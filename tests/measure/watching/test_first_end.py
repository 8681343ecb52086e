"""Which rank failed first."""

from __future__ import annotations

from ncclcheck.measure.watching.first_end import in_order
from ncclcheck.model.job.together import RankEnd
from ncclcheck.model.job.watched import WatchedRank


def _end(rank: int, at_s: float, *, by_signal: bool = False) -> RankEnd:
    return RankEnd(WatchedRank(rank, f"node{rank}", 100 + rank), at_s, by_signal)


def _ranks(*ends: RankEnd, clocks: dict[str, float] | None = None) -> list[int | None]:
    return [end.rank.rank for end in in_order(ends, clocks or {})]


def test_the_earliest_is_first() -> None:
    assert _ranks(_end(0, 12.0), _end(3, 10.0), _end(1, 11.5)) == [3, 1, 0]
    assert _ranks() == []


def test_a_rank_that_the_kernel_ended_comes_before_those_that_ended_within_a_second() -> None:
    assert _ranks(_end(0, 10.0), _end(3, 10.4, by_signal=True)) == [3, 0]
    assert _ranks(_end(0, 10.0), _end(3, 15.0, by_signal=True)) == [0, 3]  # the launcher ended it


def test_a_clock_that_is_wrong_is_put_right_and_a_beat_that_was_read_late_is_not() -> None:
    ends = _end(0, 10.0), _end(3, 3609.0)
    assert _ranks(*ends, clocks={"node0": 0.1, "node3": -3600.0}) == [3, 0]
    assert _ranks(_end(0, 10.0), _end(3, 9.5), clocks={"node3": 1.0}) == [3, 0]
