"""Which rank made an iteration take far longer than the others: it entered late, or it did not run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ncclcheck.model.benchmarks.soak import SoakTail

WORTH = 5  # times the median of the block: what the judge may call a tail
MOST = 8  # of a block: the longest ones
_SHARE = 0.5  # of the iteration, that one rank has to explain
_HARDLY = 0.2  # of the wait of the rank that is named, and of the iteration
_PAIR = 2  # ranks: one has nobody that waits for it


class RankIdle(Struct, frozen=True):
    """For how long a rank's process stood still during a batch, and for how long it waited for a core."""

    stalled_us: float = 0.0
    waited_us: float = 0.0


def tails_of(
    ranks_us: Sequence[Sequence[float]], idle: Sequence[RankIdle], usual_us: float, *, together: bool = True
) -> list[SoakTail]:
    """Return the long iterations of a batch, the longest first.

    `ranks_us`: per rank how long it was inside each call, the lead-in before them first. `idle`: of each rank during
    the whole batch; a standstill that explains one iteration is not left for the next. Where ranks waited for cores, or
    one stood still, for so long that this explains an iteration, no other rank is said to have come late to it.
    """
    left_us = [rank.stalled_us for rank in idle]
    columns = list(zip(*ranks_us, strict=True))
    found = []
    for place in sorted(range(1, len(columns)), key=lambda place: -max(columns[place])):
        time_us = max(columns[place])
        if time_us <= WORTH * usual_us:
            break
        stopped = max(range(len(left_us)), key=lambda rank: left_us[rank])
        if left_us[stopped] >= _SHARE * time_us:
            found.append(SoakTail(round(time_us, 1), stopped, "stopped", round(left_us[stopped], 1)))
            left_us[stopped] -= min(left_us[stopped], time_us)
            continue
        late = _late(columns, place) if together and not _stood_still(time_us, idle) else None
        found.append(
            _without_core(time_us, idle) or late or SoakTail(round(time_us, 1), None, "unknown", 0.0)
        )
    return found


def _stood_still(time_us: float, idle: Sequence[RankIdle]) -> bool:
    """Return whether a rank stood still for so long during the batch that this may have made another call late."""
    return any(rank.stalled_us >= _SHARE * time_us for rank in idle)


def _late(columns: Sequence[Sequence[float]], place: int) -> SoakTail | None:
    """Return the rank that entered a call last; None where none was outside of calls for so long.

    Who comes last is inside for the shortest time, and the others wait for it, where all end together: who only sends
    in a broadcast leaves early. But a rank that is held inside one call, by the network or for lack of a core, comes
    late to the next one: over the neighbouring calls it was inside for as long as all others.
    """
    time_us = max(columns[place])
    around = columns[place - 1 : place + 2]
    inside_us = [sum(parts) for parts in zip(*around, strict=True)]
    late = min(range(len(inside_us)), key=lambda rank: inside_us[rank])
    by_us = max(inside_us) - inside_us[late]
    waiting = sum(duration_us >= _SHARE * time_us for duration_us in columns[place])
    is_last = place == len(columns) - 1  # the call after it is not known
    if len(inside_us) < _PAIR or by_us < _SHARE * time_us or (is_last and 2 * waiting <= len(inside_us)):
        return None
    if columns[place][late] > (1 - _SHARE) * time_us:
        return None
    return SoakTail(round(time_us, 1), late, "late", round(by_us, 1))


def _without_core(time_us: float, idle: Sequence[RankIdle]) -> SoakTail | None:
    """Return that ranks waited for a core, and which one where it alone did; None where none waited for long.

    Only one did if all others hardly waited, as on cores of their own: on shared cores it is chance which rank the
    kernel lets wait longest.
    """
    waited_us = [rank.waited_us for rank in idle]
    longest_us, *others_us = sorted(waited_us, reverse=True)
    if longest_us < _SHARE * time_us:
        return None
    is_alone = bool(others_us) and others_us[0] < _HARDLY * min(time_us, longest_us)
    return SoakTail(
        round(time_us, 1), waited_us.index(longest_us) if is_alone else None, "core", round(longest_us, 1)
    )


def longest(tails: Sequence[SoakTail]) -> tuple[SoakTail, ...]:
    """Return the longest ones."""
    return tuple(sorted(tails, key=lambda tail: -tail.time_us)[:MOST])
