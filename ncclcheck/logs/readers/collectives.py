"""Collectives that timed out, and how far each group had come: torch's NCCL watchdog, and Gloo's waits.

Source: torch ProcessGroupNCCL.cpp 2.0 to 2.13 (checkTimeout, watchdogHandler), gloo transport/tcp/unbound_buffer.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.logs.patterns.literals import needles
from ncclcheck.logs.readers.numbers import whole
from ncclcheck.model.events import CollectiveTimeout, Event, GroupStatus, LogPosition

_WORK = re.compile(
    r"(?:collective operation timeout|Timeout at collective|timed out)[^(]{0,40}WorkNCCL\("
    r"(?:SeqNum=(?P<sequence>\d+), )?OpType=(?P<operation>\w+)"
    r"(?:, (?:NumelIn=(?P<numel_in>\d+)|TensorShape=\[(?P<shape>[\d, ]*)\]))?"
    r"(?:, NumelOut=(?P<numel_out>\d+))?"
    r"(?:, Timeout\(ms\)=(?P<timeout>\d+))?"
)
_GROUP = re.compile(
    r"\[(?:PG (?:ID )?(?P<id>\d+)(?: ?PG GUID (?P<guid>[^\s(\]]+))?(?: ?\((?P<name>[^)]*)\))? )?Rank (?P<rank>\d+)\]"
)
_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>\d+), last completed (?:NCCL )?work: (?P<completed>\d+)",
    re.IGNORECASE,
)
_GLOO = re.compile(
    r"Timed out waiting (?P<timeout>\d+) ?ms for (?P<what>send|recv)|Gloo.{0,80}timed out waiting",
    re.IGNORECASE,
)
PATTERNS = tuple(pattern.pattern for pattern in (_WORK, _STATUS, _GLOO))
_may_match = re.compile(needles(PATTERNS)).search


def rank_in(text: str) -> int | None:
    """Return the rank that torch's own `[PG ... Rank N]` names."""
    match = _GROUP.search(text) if "Rank " in text else None
    return whole(match["rank"]) if match else None


def read(text: str, place: LogPosition) -> Iterator[Event]:
    """Yield the timeouts and states of groups that `text` reports."""
    if not _may_match(text.lower()):
        return
    group = _group(text)
    if match := _WORK.search(text):
        yield CollectiveTimeout(
            place=place,
            text=text,
            layer="nccl",
            group=group,
            sequence=whole(match["sequence"]),
            operation=match["operation"].strip("_"),
            elements_in=whole(match["numel_in"]),
            elements_out=whole(match["numel_out"]),
            timeout_ms=whole(match["timeout"]),
        )
    if match := _STATUS.search(text):
        enqueued, completed = whole(match["enqueued"]), whole(match["completed"])
        if enqueued is not None and completed is not None:
            yield GroupStatus(place=place, text=text, group=group, enqueued=enqueued, completed=completed)
    if match := _GLOO.search(text):
        yield CollectiveTimeout(
            place=place,
            text=text,
            layer="gloo",
            group="",
            sequence=None,
            operation=match["what"] or "",
            elements_in=None,
            elements_out=None,
            timeout_ms=whole(match["timeout"]),
        )


def _group(text: str) -> str:
    match = _GROUP.search(text)
    return (match["guid"] or match["id"] or "0") if match else "0"
