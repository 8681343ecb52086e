"""When a round of pairs is over: soon after the pairs that finished, so that one that hangs costs seconds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.timeouts import PAIRS_PATIENCE_S, PAIRS_READY_S, ROUND_ALONE_S, ROUND_FIRST_S, ROUND_LEAST_S

SLOWEST = 8  # a pair may take so many times the usual time of a transfer longer than the others


class Finished(Struct, frozen=True):
    """An end of a pair that finished: when, since the round began, how long it took, and one of its transfers."""

    at_s: float
    seconds: float
    transfer_s: float


def round_limit_s(finished: Sequence[Finished], busy: int, before: Sequence[Finished]) -> float:
    """Return when the round is over for those that did not finish, in seconds since it began.

    `busy`: how many nodes have a partner. `before`: those that finished in the rounds before, which tell how long a
    pair takes until half of this round have finished. The start of the processes is no transfer, but a pair may need as
    long again as the others took in all: on a busy machine that is longer.
    """
    if 2 * len(finished) >= busy:
        return max(end.at_s for end in finished) + _patience_s(finished)
    if before:
        return median(end.seconds for end in before) + _patience_s(before)
    return ROUND_FIRST_S if busy > 2 else ROUND_ALONE_S  # noqa: PLR2004 (more than one pair)


def start_limit_s(ready_s: Sequence[float], members: int) -> float:
    """Return when nodes that have not started what measures are given up, in seconds since they were asked.

    `ready_s`: when others were ready. Once half of them are, the rest may take as long again.
    """
    if 2 * len(ready_s) < members:
        return PAIRS_READY_S
    return min(PAIRS_READY_S, max(ready_s) + max(PAIRS_PATIENCE_S, max(ready_s)))


def _patience_s(finished: Sequence[Finished]) -> float:
    usual_s = median(end.seconds for end in finished)
    return max(ROUND_LEAST_S, SLOWEST * median(end.transfer_s for end in finished), usual_s)
