"""Which groups of a dimension are slower than the others that span as many nodes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct

from ncclcheck.model.benchmarks.mesh_bench import GroupTime, SlowGroup

EFFECT = 0.2  # slower than the others by more than this part, with 95 %
_LEAST_TIME_US = 0.001  # what another node says may be 0
_LEAST_US = 200.0  # what a busy core may take from a small message


class GroupComparison(Struct, frozen=True):
    """The slow groups, slowest first, and how many groups could be compared with others."""

    slow: tuple[SlowGroup, ...]
    judged: int


def slow_groups(times: Sequence[GroupTime], *, on_gpus: bool) -> GroupComparison:
    """Compare each group with the others that span as many nodes.

    Without GPUs a group inside a node is as fast as its cores, and is not judged; and groups on the same nodes share
    one interface, of which TCP gives one more than the other: they are judged together, by their mean.
    """
    together: dict[object, list[GroupTime]] = {}
    for time in times:
        together.setdefault(time.group if on_gpus else time.hosts, []).append(time)
    found, judged = [], 0
    for key, times_together in together.items():
        slowest = max(times_together, key=lambda time: time.time_us)
        alike = [fmean(time.time_us for time in theirs) for theirs_key, theirs in together.items()
                 if theirs_key != key and theirs[0].nodes == slowest.nodes]  # fmt: skip
        if not alike or (slowest.nodes == 1 and not on_gpus):
            continue
        judged += len(times_together)
        usual_us, mean_us = max(median(alike), _LEAST_TIME_US), fmean(time.time_us for time in times_together)
        least_us = fmean(time.time_us if time.low_us is None else time.low_us for time in times_together)
        if least_us > (1 + EFFECT) * usual_us and mean_us - usual_us > _LEAST_US:
            found.append(SlowGroup(slowest, usual_us, len(alike)))
    return GroupComparison(tuple(sorted(found, key=lambda slow: -slow.time.time_us)), judged)
