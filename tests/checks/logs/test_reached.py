"""How far each rank had come when the ranks timed out."""

from __future__ import annotations

from ncclcheck.checks.logs._reached import reached_by_group
from ncclcheck.checks.logs._view import timeouts
from tests.checks.logs.explaining import read

_LATE = (
    "[rank{0}]:[E909 08:45:30.1 ProcessGroupNCCL.cpp:685] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)
_STATUS = (
    "[rank{0}]:[E909 08:45:30.2 ProcessGroupNCCL.cpp:2252] [PG ID {1} PG GUID {1} Rank {0}] PG status: "
    "last enqueued work: {2}, last completed work: {3}\n"
)


def numbers(text: str) -> list[dict[int, int]]:
    log = read(text)
    reached = reached_by_group(log, timeouts(log))
    return [{rank: number for rank, (number, _) in group.items()} for group in reached]


def test_a_timeout_belongs_to_the_group_whose_status_it_fits_although_it_names_none() -> None:
    text = _LATE.format(1, 40231) + _STATUS.format(1, 3, 40267, 40230) + _STATUS.format(1, 0, 3, 3)
    assert numbers(text) == [{1: 40267}, {1: 3}]


def test_without_a_status_that_fits_timeouts_are_of_one_group() -> None:
    assert numbers(_LATE.format(0, 7) + _LATE.format(1, 8)) == [{0: 7, 1: 8}]
