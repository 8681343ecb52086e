"""Whether the level of a series has just jumped: its last blocks against those right before them.

Where neighbouring blocks are alike, the level wanders: far from the usual one is not rare, but a jump is. So the
blocks before it tell a jump better than the usual level does.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ncclcheck.measure.soak.noise import Noise

SPANS = (6, 8)  # blocks on each side
BLOCKS = 2 * SPANS[-1]
_LOWER = 8  # one in so many of the last blocks may be as low as before
_SURE = 5.0  # standard errors


def has_jumped(values: Sequence[float], noise: Noise) -> bool:
    """Return whether the last blocks are higher than those before by more than such noise makes them.

    A few spikes move a median, too. So nearly all of the last blocks have to be higher, by half of that.
    """
    for count in SPANS:
        if len(values) < 2 * count:
            break
        before, after = median(values[-2 * count : -count]), sorted(values[-count:])
        least = _SURE * noise.step_error(count)
        if median(after) - before >= least and after[count // _LOWER] - before >= least / 2:
            return True
    return False
