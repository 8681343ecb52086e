"""How far each rank of a group had come when the ranks timed out. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncclcheck.checks.logs._view import remarks, statuses
from ncclcheck.model.events import CollectiveTimeout, Event, GroupStatus, Log

_NOT_PASSED = re.compile(
    r"(?<!\[)[Rr]anks? (?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,200}) failed to pass monitoredBarrier"
)


def reached_by_group(log: Log, late: Sequence[CollectiveTimeout]) -> list[dict[int, tuple[int, Event]]]:
    """Return, for each group, the collective that each rank had come to, or at least to the one that it waited in."""
    reached: dict[str, dict[int, tuple[int, Event]]] = {}
    for status in statuses(log):
        if (rank := status.place.rank) is not None:
            earliest = reached.setdefault(status.group, {})
            if rank not in earliest or status.enqueued < earliest[rank][0]:
                earliest[rank] = status.enqueued, status
    statuses_by_rank: dict[int | None, list[GroupStatus]] = {}
    for status in statuses(log):
        statuses_by_rank.setdefault(status.place.rank, []).append(status)
    for timeout in late:
        rank, sequence = timeout.place.rank, timeout.sequence
        if rank is not None and sequence is not None:
            of_rank = {status.group for status in statuses_by_rank.get(rank, ()) if _is_at(status, sequence)}
            group = of_rank.pop() if len(of_rank) == 1 else timeout.group
            reached.setdefault(group, {}).setdefault(rank, (sequence, timeout))
    return list(reached.values())


def not_passed(log: Log) -> list[int]:
    """Return the ranks of which torch's monitored barrier says that they did not pass it in time."""
    return sorted(
        {
            int(number)
            for remark in remarks(log, "monitored-barrier")
            if (match := _NOT_PASSED.search(remark.text))
            for number in match["ranks"].split(",")
            if number.strip().isdecimal()
        }
    )


def _is_at(status: GroupStatus, sequence: int) -> bool:
    """Return True if the status is of the group in which its rank waited: torch's line of the timeout names none."""
    return status.completed < sequence <= status.enqueued
