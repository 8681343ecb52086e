"""What is given to torch.distributed for a group: its process group, and the ranks of the job."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.bench.groups.group_calls import GroupCalls
from ncclcheck.measure.collectives import COLLECTIVES, RankContext


class Work:
    """A call that is on its way."""

    def __init__(self, dist: Dist) -> None:
        self.dist = dist

    def wait(self) -> None:
        self.dist.waited += 1


class Dist:
    """torch.distributed of torch 2.2 to 2.12, which only remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.waited = 0
        self.isend, self.irecv = "isend", "irecv"

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_single") and name != "all_to_all_single":
            raise AttributeError(name)
        return lambda *values, **named: self._told(name, values, named)

    def _told(self, name: str, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name == "P2POp":
            return (*values, named["group"])
        self.calls.append((name, *values, named.get("group"), named.get("async_op")))
        return [Work(self)] if name == "batch_isend_irecv" else Work(self)


@pytest.mark.parametrize(("op", "expected"), [
    ("all_reduce", ("all_reduce", "recv", "group", False)),
    ("all_gather", ("all_gather_into_tensor", "recv", "send", "group", False)),
    ("all_to_all", ("all_to_all_single", "recv", "send", "group", False)),
    ("broadcast", ("broadcast", "recv", 5, "group", False)),
    ("reduce", ("reduce", "recv", 5, "group", False)),
    ("gather", ("gather", "send", None, 5, "group", False)),
    ("scatter", ("scatter", "recv", None, 5, "group", False)),
])  # fmt: skip
def test_a_root_is_a_rank_of_the_job_and_the_group_is_named(op: Any, expected: tuple[Any, ...]) -> None:
    dist = Dist()
    calls: Any = GroupCalls(dist, "group", (5, 7))
    buffers: Any = ("send", "recv")
    COLLECTIVES[op].bind(calls, RankContext(1, 2), *buffers)()
    assert dist.calls == [expected]


def test_peers_are_ranks_of_the_job() -> None:
    dist = Dist()
    calls: Any = GroupCalls(dist, "group", (1, 3, 5))
    buffers: Any = ("send", "recv")
    COLLECTIVES["send_recv"].bind(calls, RankContext(1, 3), *buffers)()
    ((name, transfers, *_),) = dist.calls
    assert name == "batch_isend_irecv"
    assert transfers == [("isend", "send", 5, "group"), ("irecv", "recv", 1, "group")]
    assert dist.waited == 1


def test_overlapped_calls_are_awaited_together() -> None:
    dist = Dist()
    calls: Any = GroupCalls(dist, "group", (1, 3), overlapped=True)
    buffers: Any = ("send", "recv")
    for op in ("all_reduce", "broadcast", "send_recv"):
        COLLECTIVES[op].bind(calls, RankContext(0, 2), *buffers)()
    assert dist.waited == 0
    assert dist.calls[0][-1] is True
    calls.wait()
    calls.wait()
    assert dist.waited == 3
