"""How far each rank had come when the ranks timed out."""

from __future__ import annotations

from ncclcheck.checks.logs._reached import reached_by_group
from ncclcheck.checks.logs._view import timeouts
from tests.checks.logs.explaining import explain, read

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


def test_who_had_no_more_batches_is_who_did_not_pass_the_barrier() -> None:
    log = (
        "[E ProcessGroupGloo.cpp:138] Rank 3 successfully reached monitoredBarrier, but received errors while waiting "
        "for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n"
        "[E ProcessGroupGloo.cpp:138] [Rank 0]: Rank 2 failed to pass monitoredBarrier in 30000 ms\n"
        "INFO Detected uneven workload distribution: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 30000 ms\n"
    )
    found = explain(log)
    assert (found.findings[0].slug, found.findings[0].hosts) == ("uneven-inputs", ("rank 2",))
