"""When a round of pairs is over: soon after the pairs that finished, so that one that hangs costs seconds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import FEW_TRANSFERS
from ncclcheck.timeouts import ROUND_ALONE_S, ROUND_FIRST_S, ROUND_LEAST_S, ROUND_START_S

SLOWEST = 8  # a pair may take so many times the usual time of a transfer longer than the others
DIRECTIONS = 2


class Finished(Struct, frozen=True):
    """An end of a pair that finished: when, since the round began, how long it took, and one of its `transfers`."""

    at_s: float
    seconds: float
    transfer_s: float
    transfers: int = FEW_TRANSFERS


def round_limit_s(
    finished: Sequence[Finished], busy: int, before: Sequence[Finished], transfers: int = FEW_TRANSFERS
) -> float:
    """Return when the round is over for those that did not finish, in seconds since it began.

    `busy`: how many nodes have a partner. `before`: those that finished in the rounds before, which tell how long a
    pair takes until half of this round have finished; it has so many `transfers`, which may be more than theirs.
    """
    if 2 * len(finished) >= busy:
        return max(end.at_s for end in finished) + _patience_s(finished)
    if before:
        return median(_expected_s(end, transfers) for end in before) + _patience_s(before)
    return ROUND_FIRST_S if busy > 2 else ROUND_ALONE_S  # noqa: PLR2004 (more than one pair)


def _expected_s(end: Finished, transfers: int) -> float:
    """Return how long that pair would take with so many transfers."""
    return end.seconds + DIRECTIONS * max(0, transfers - end.transfers) * end.transfer_s


def _patience_s(finished: Sequence[Finished]) -> float:
    """Return how much longer than the others a pair may take.

    The start of the processes is no transfer, but on a busy machine it differs between the pairs.
    """
    start_s = median(end.seconds - DIRECTIONS * end.transfers * end.transfer_s for end in finished)
    usual_s = median(end.transfer_s for end in finished)
    return max(ROUND_LEAST_S, SLOWEST * usual_s, min(ROUND_START_S, start_s))
