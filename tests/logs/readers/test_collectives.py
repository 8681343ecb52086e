"""Collectives that timed out, of torch 2.0 to now, and of Gloo."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.collectives import rank_in, read
from ncclcheck.model.events import CollectiveTimeout, GroupStatus, LogPosition

PLACE = LogPosition("job.log", 1)


@pytest.mark.parametrize(
    ("work", "sequence", "operation", "elements"),
    [
        (
            "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=7, NumelOut=7, Timeout(ms)=600000)",
            5,
            "ALLREDUCE",
            7,
        ),
        ("WorkNCCL(SeqNum=9, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000)", 9, "ALLGATHER_BASE", None),
        ("WorkNCCL(OpType=BROADCAST, TensorShape=[1], Timeout(ms)=1800000)", None, "BROADCAST", None),
    ],
)
def test_the_watchdog(work: str, sequence: int | None, operation: str, elements: int | None) -> None:
    line = f"[Rank 3] Watchdog caught collective operation timeout: {work} ran for 600001 milliseconds"
    (found,) = read(line, PLACE)
    assert isinstance(found, CollectiveTimeout)
    assert (found.sequence, found.operation, found.elements_in) == (sequence, operation, elements)
    assert rank_in(line) == 3


def test_how_far_a_group_had_come() -> None:
    (found,) = read(
        "[PG ID 2 PG GUID 9 Rank 4] Timeout at NCCL work: 610, last enqueued NCCL work: 616, "
        "last completed NCCL work: 609.",
        PLACE,
    )
    assert isinstance(found, GroupStatus)
    assert (found.group, found.enqueued, found.completed) == ("9", 616, 609)


def test_gloo_waits() -> None:
    (found,) = read("[unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete", PLACE)
    assert isinstance(found, CollectiveTimeout)
    assert (found.layer, found.operation, found.timeout_ms) == ("gloo", "recv", 25000)
