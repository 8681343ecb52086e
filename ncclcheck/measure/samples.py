"""How many raw iteration times of a point are kept, and which."""

from __future__ import annotations

from collections.abc import Sequence

MOST_SAMPLES = 1000


def kept_samples(samples_us: Sequence[float]) -> tuple[float, ...]:
    """Return all samples up to 1000; of more, evenly spread ones in order. In tenths of a microsecond below 100 us."""
    count = len(samples_us)
    step = max(1.0, count / MOST_SAMPLES)
    chosen = (samples_us[int(number * step)] for number in range(min(count, MOST_SAMPLES)))
    return tuple(round(us, 1) if us >= 10 else round(us, 3) for us in chosen)  # noqa: PLR2004 (four digits that count)
