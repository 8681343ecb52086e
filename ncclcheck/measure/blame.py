"""Which ranks keep the others waiting: far more than the rest, and for a good part of the iteration."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.model.bench import Point

LATE_SHARE = 0.20  # of the iteration time: below it nobody would gain much
LATE_US = 100.0  # below it is the staggered exit of the algorithm itself (see measure.lateness)
_OUTLIER = 5.0  # robust standard deviations from the median of the others
_LEAST_SPREAD = 0.03  # of the iteration time; so that five of them are a difference that matters
_FACTOR = 3.0  # times the others' median
_FACTOR_OF_TWO = 5.0  # two ranks have no spread to compare with
_MAD_TO_SIGMA = 1.4826  # of a normal distribution


class SlowRank(Struct, frozen=True):
    """A late rank: how much in a typical point, as time and as a part of the iteration, and the others' part."""

    rank: int
    host: str
    late_us: float
    late_share: float
    others_share: float
    points: int


def slow_ranks(points: Sequence[Point]) -> tuple[SlowRank, ...]:
    """The ranks whose lateness, the median over the points, is large and far outside the others'; worst first.

    Large: more than 20 % of the iteration time and 100 us. Far outside, from three ranks on: more than 5 robust
    standard deviations (1.4826 MAD) above the others' median, and three times it; of two ranks: five times the other.
    Each rank is compared with the others only, so that two slow ones do not hide each other.
    """
    shares = _shares(points)
    found = []
    for rank, own in shares.items():
        others = [median(values) for other, values in shares.items() if other != rank]
        late_us = median(time.late_us for point in points for time in point.ranks if time.rank == rank)
        share = median(own)
        if others and share > LATE_SHARE and late_us > LATE_US and _is_far_outside(share, others):
            found.append(SlowRank(rank, _host(points, rank), late_us, share, median(others), len(own)))
    return tuple(sorted(found, key=lambda slow: -slow.late_share))


def _shares(points: Sequence[Point]) -> dict[int, list[float]]:
    """Rank -> its lateness in each point as a part of the iteration time."""
    shares: dict[int, list[float]] = {}
    for point in points:
        for time in point.ranks:
            if point.time_us.p50 > 0:
                shares.setdefault(time.rank, []).append(time.late_us / point.time_us.p50)
    return shares


def _is_far_outside(share: float, others: Sequence[float]) -> bool:
    middle = median(others)
    if len(others) == 1:
        return share > _FACTOR_OF_TWO * middle
    spread = max(_MAD_TO_SIGMA * median(abs(other - middle) for other in others), _LEAST_SPREAD)
    return share - middle > _OUTLIER * spread and share > _FACTOR * middle


def _host(points: Sequence[Point], rank: int) -> str:
    return next(time.host for point in points for time in point.ranks if time.rank == rank)
