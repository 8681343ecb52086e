"""The spread of millions of iterations in constant memory, a series of bounded length, and its worst stretches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from math import exp, floor, log

from ncclcheck.model.benchmarks.soak import SoakSample, SoakWindow

STEP = 1.04  # of a histogram of times: a percentile is known to 2 %
P99_ITERATIONS, P999_ITERATIONS = 100, 10_000
MOST_SAMPLES = 1024
_LEAST_US = 1e-3


def times_of(times_us: Iterable[float]) -> dict[int, int]:
    """Return how many of the times lie in each step."""
    return dict(Counter(floor(log(max(time_us, _LEAST_US)) / log(STEP)) for time_us in times_us))


def percentile_us(times: Mapping[int, int], percent: float) -> float:
    """Return the middle of the step that holds the percentile."""
    left = percent / 100 * sum(times.values())
    for step in sorted(times):
        left -= times[step]
        if left <= 0:
            return float(STEP ** (step + 0.5))
    return 0.0


def shortened(samples: Sequence[SoakSample]) -> list[SoakSample]:
    """Return the samples, two neighbours as one where there are too many."""
    if len(samples) <= MOST_SAMPLES:
        return list(samples)
    pairs = zip(samples[::2], samples[1::2], strict=False)
    joined = [
        SoakSample(
            first.at_s,
            (first.median_us * first.blocks + second.median_us * second.blocks)
            / (first.blocks + second.blocks),
            max(first.worst_us, second.worst_us),
            first.blocks + second.blocks,
        )
        for first, second in pairs
    ]
    return joined + list(samples[2 * len(joined) :])


class WorstWindow:
    """The worst stretch of so many seconds. A class because it moves on with each block."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._blocks: deque[tuple[float, float]] = deque()
        self._total = 0.0
        self._worst: tuple[float, float] | None = None  # of logarithms, and when it began

    def feed(self, at_s: float, end_s: float, slower: float) -> None:
        """Take the next block: the logarithm of its median over the usual one."""
        self._blocks.append((at_s, slower))
        self._total += slower
        while len(self._blocks) > 1 and end_s - self._blocks[1][0] >= self._seconds:
            self._total -= self._blocks.popleft()[1]
        if end_s - self._blocks[0][0] < self._seconds:
            return
        mean = self._total / len(self._blocks)
        if self._worst is None or mean > self._worst[0]:
            self._worst = mean, self._blocks[0][0]

    def break_off(self) -> None:
        """Begin anew after a gap."""
        self._blocks.clear()
        self._total = 0.0

    def found(self, began: float) -> SoakWindow | None:
        """Return it; None where the series is shorter."""
        if self._worst is None:
            return None
        mean, at_s = self._worst
        return SoakWindow(self._seconds, round(at_s - began, 1), round(100 * (exp(mean) - 1), 2))
