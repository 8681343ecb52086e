"""Finds when a series of block medians became slower, and when that was over, with few false alarms.

A one-sided CUSUM (Page 1954) on the logarithm of each median, standardised by median and MAD of the blocks before and
cut at four deviations, so that a spike counts as much as a slow block. Four blocks at least, and a guard: what is
slower by less than `drop` is no drop, however sure. Neighbouring blocks are often alike, so the run has to be far
beyond what so many blocks of this correlation do by chance: from the usual level, or from the blocks just before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import exp, log
from statistics import median

from msgspec import Struct

from ncclcheck.measure.soak.jumps import BLOCKS, has_jumped
from ncclcheck.measure.soak.jumps import SPANS as JUMP_SPANS
from ncclcheck.measure.soak.noise import Noise, noise_of
from ncclcheck.measure.statistics import median_interval

ALLOWANCE, LIMIT = 1.0, 12.0  # k and h of the CUSUM, in deviations
WINSOR = 4.0
LEAST_RUN = 4  # blocks of a drop, and of its end
LEARNED = 8  # blocks before anything is judged
REMEMBERED = 720  # blocks of the usual level: two hours of blocks of 10 s
ABSORBED = 90  # a run of so many that is no drop is the usual level from now on: load changes over a day
LEAST_DEVIATION = 0.005
SUSPECT = 6.0  # of the CUSUM: pairs are worth measuring
_MAD = 1.4826  # of a normal distribution, to its deviation
_SURE = 5.0  # standard errors of a run of blocks that are alike
_MOST = 0.75  # of the last blocks are slower by the guard
_QUARTILE = 0.67  # deviations from the middle, which a quarter of normal values lies beyond
_SPIKE = 3.0  # deviations
_STEPS_KNOWN = 64  # blocks before jumps are judged: of fewer that are alike the correlation is a guess
_SPANS = (4, 8, 16, 32, 64)  # last blocks that are looked at together
_RECOUNT = 8  # blocks between two countings of the usual level


class Drop(Struct, frozen=True):
    """A drop: when it began and ended (None: it lasts), when it was known, and by which part the speed was lower."""

    from_s: float
    to_s: float | None
    known_s: float
    part: float
    low: float
    high: float

    @property
    def is_withdrawn(self) -> bool:
        """Return whether it is over, and its interval does not tell it from nothing."""
        return self.to_s is not None and self.low <= 0


class _Seen(Struct, frozen=True):
    at_s: float
    value: float


class DropDetector:
    """Judges one series, block by block. A class because the level and the sum go on from block to block."""

    def __init__(self, drop: float) -> None:
        """`drop`: the least part of the speed whose loss is a drop."""
        self._guard = -log(1 - drop)
        self._base: deque[float] = deque(maxlen=REMEMBERED)
        self._run: list[_Seen] = []
        self._sum = 0.0
        self._level, self._deviation, self._counted = 0.0, LEAST_DEVIATION, 0
        self._noise = Noise(LEAST_DEVIATION, LEAST_DEVIATION)
        self._recent: deque[float] = deque(maxlen=BLOCKS)  # since a drop began or ended
        self._open: Drop | None = None
        self._inside: deque[float] = deque(maxlen=REMEMBERED)
        self._last: deque[_Seen] = deque(maxlen=LEAST_RUN)

    def demand(self, drop: float) -> None:
        """Judge by another least part from now on, as a resumed soak may want."""
        self._guard = -log(1 - drop)

    @property
    def usual_us(self) -> float | None:
        """Return the usual median; None while too few blocks are known."""
        return exp(self._level) if len(self._base) >= LEARNED else None

    @property
    def drop(self) -> Drop | None:
        """Return the drop that lasts."""
        return self._open

    @property
    def is_suspect(self) -> bool:
        """Return whether a drop lasts, or may just have begun."""
        return self._open is not None or (self._sum >= SUSPECT and len(self._run) > 1)

    def least_drop(self, blocks: int) -> float | None:
        """Return the smallest drop of so many blocks that is told from the noise seen so far; None before the usual.

        It is what `_is_drop` demands, of blocks that are all slower by that.
        """
        if len(self._base) < LEARNED or blocks < LEAST_RUN:
            return None
        errors = [self._noise.level_error(count) for count in _SPANS if count <= blocks]
        if len(self._base) >= _STEPS_KNOWN:
            errors += [self._noise.step_error(count) for count in JUMP_SPANS if count <= blocks]
        summed = self._deviation * (ALLOWANCE + LIMIT / blocks)
        guarded = self._guard + _QUARTILE * self._deviation
        return 1 - exp(-max(_SURE * min(errors), summed, guarded))

    def feed(self, at_s: float, end_s: float, median_us: float) -> Drop | None:
        """Take the next block; return a drop where this block made one known, or ended it."""
        seen = _Seen(at_s, log(max(median_us, 1e-3)))
        self._recent.append(seen.value)
        if len(self._base) < LEARNED:
            self._learn([seen.value])
            return None
        if self._open is not None:
            return self._inside_of(self._open, seen)
        z = min(WINSOR, (seen.value - self._level) / self._deviation)
        self._sum = max(0.0, self._sum + z - ALLOWANCE)
        if self._sum == 0.0:
            self._learn([*(past.value for past in self._run), seen.value])
            self._run.clear()
            return None
        self._run.append(seen)
        if self._is_drop() and (begun := self._begin(end_s)) is not None:
            return begun
        if len(self._run) >= ABSORBED:
            self._learn(past.value for past in self._run)
            self._run.clear()
            self._sum = 0.0
        return None

    def _is_drop(self) -> bool:
        if self._sum < LIMIT or len(self._run) < LEAST_RUN:
            return False
        values = [past.value - self._level for past in self._run]
        recent = values[-2 * LEAST_RUN :]
        if sum(value >= self._guard for value in recent) < _MOST * len(recent):
            return False
        if len(self._base) >= _STEPS_KNOWN and has_jumped(tuple(self._recent), self._noise):
            return True
        for count in _SPANS:
            last = sorted(values[-count:])
            least = max(self._guard, _SURE * self._noise.level_error(count))
            # Three spikes of four blocks are not rare enough, but they are never alike.
            is_alike = count > LEAST_RUN or last[2] - last[0] <= max(
                self._guard, 2 * _SPIKE * self._deviation
            )
            if count <= len(values) and is_alike and median(last) >= least:
                return True
        return False

    def _begin(self, end_s: float) -> Drop | None:
        first = self._first_of_run()
        self._inside.extend(past.value for past in self._run[first:])
        begun = self._measured(Drop(self._run[first].at_s, None, end_s, 0.0, 0.0, 0.0))
        if begun.low <= 0 or -log(1 - begun.part) < self._guard:
            self._inside.clear()
            return None
        self._learn(past.value for past in self._run[:first])
        self._open = begun
        self._run.clear()
        self._last.clear()
        self._recent.clear()
        self._sum = 0.0
        return self._open

    def _first_of_run(self) -> int:
        """Return from which block on the run is nearest to a level that jumped: the rest may be noise before it."""
        reached = median(past.value for past in self._run[-LEAST_RUN:]) - self._level
        half = max(self._guard, reached) / 2
        above = 0.0
        sums = {}
        for place in reversed(range(len(self._run))):
            above += max(-half, min(half, self._run[place].value - self._level - half))
            sums[place] = above
        return max(sums, key=lambda place: (sums[place], -place))

    def _inside_of(self, drop: Drop, seen: _Seen) -> Drop | None:
        """Take a block while a drop lasts: it is over once most of a few blocks are back."""
        self._last.append(seen)
        middle = (self._level + median(self._inside)) / 2
        back = [past for past in self._last if past.value < middle]
        if len(self._last) < LEAST_RUN or len(back) < LEAST_RUN - 1 or seen.value >= middle:
            self._inside.append(seen.value)
            self._open = self._measured(drop)
            return None
        for past in back[:-1]:  # they were counted while it was not known that they were back
            self._inside.remove(past.value)
        ended = self._measured(Drop(drop.from_s, back[0].at_s, drop.known_s, 0.0, 0.0, 0.0))
        self._learn(past.value for past in back)
        self._open = None
        self._inside.clear()
        self._recent.clear()
        return ended

    def _measured(self, drop: Drop) -> Drop:
        """Return the drop with its size: the middle of its blocks, with the interval of that where there are enough."""
        inside = list(self._inside)
        around = median_interval(inside) if inside else None
        middle = median(inside) if inside else self._level
        low, high = (around.low, around.high) if around is not None else (middle, middle)
        parts = (1 - exp(self._level - value) for value in (middle, low, high))
        return Drop(drop.from_s, drop.to_s, drop.known_s, *parts)

    def _learn(self, values: Iterable[float]) -> None:
        before = len(self._base)
        self._base.extend(values)
        self._counted += len(self._base) - before or 1
        if self._counted >= _RECOUNT or len(self._base) <= 2 * LEARNED:
            self._counted = 0
            self._level = median(self._base)
            spread = median(abs(value - self._level) for value in self._base)
            self._deviation = max(LEAST_DEVIATION, _MAD * spread)
            distances = [value - self._level for value in self._base]
            self._noise = noise_of(distances, self._deviation, _SPIKE * self._deviation)
