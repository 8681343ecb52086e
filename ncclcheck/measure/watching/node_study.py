"""The ranks of one node as two looks and two stacks of each show them: a few words per rank, for node 0. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import islice

from msgspec import Struct

from ncclcheck.measure.watching.job_progress import is_still
from ncclcheck.measure.watching.stacks import is_in_collective, own_frame, waiting_call
from ncclcheck.model.job.together import MOST_LINKS, MOST_STACKS, NodeStudy, RankStudy
from ncclcheck.model.job.watched import BlockedLink, Frame, Look, RankLook, WatchedRank

Stacks = Mapping[int, tuple[Frame, ...]]
_BUSY, _SOME = 0.5, 0.1  # of a core
_RUNNABLE = "R"


class Studied(Struct, frozen=True):
    """Two looks at a frozen job, with the stacks by process id at each; `world_size` 0: not known.

    `ended` are ranks that ended before, with how. `advances`: NCCL counted further collectives in between.
    """

    host: str
    before: Look
    after: Look
    first: Stacks
    second: Stacks
    still_s: float
    world_size: int = 0
    ended: tuple[WatchedRank, ...] = ()
    remarks: tuple[str, ...] = ()
    blocked: tuple[BlockedLink, ...] = ()
    advances: bool = False


def node_study(studied: Studied) -> NodeStudy:
    """Return what the looks and stacks tell of each rank."""
    stacks = {_digest(frames): frames for frames in studied.second.values() if frames}
    return NodeStudy(
        studied.host,
        tuple(_of_rank(studied, rank) for rank in studied.after.ranks),
        studied.world_size,
        studied.still_s,
        dict(islice(stacks.items(), MOST_STACKS)),
        studied.ended,
        studied.blocked[:MOST_LINKS],
        studied.remarks,
        studied.advances,
    )


def _of_rank(studied: Studied, rank: RankLook) -> RankStudy:
    earlier = next((look for look in studied.before.ranks if look.pid == rank.pid), None)
    frames = studied.second.get(rank.pid, ())
    if not frames or earlier is None:
        return RankStudy(rank.rank, rank.pid)
    seconds = max(studied.after.at_s - studied.before.at_s, 1e-3)
    inside = is_in_collective(frames)
    changed = studied.first.get(rank.pid) != frames
    return RankStudy(
        rank.rank,
        rank.pid,
        _digest(frames),
        inside,
        waiting_call(frames),
        own_frame(frames),
        moved=changed or (inside and not is_still(earlier, rank, seconds)),
        computes=_computes(earlier, rank, seconds),
    )


def _computes(before: RankLook, after: RankLook, seconds: float) -> bool:
    """Return True if the rank computes; on a node with more work than cores it may get little of a core for that."""
    used = (after.cpu_s - before.cpu_s) / seconds
    is_runnable = before.state == after.state == _RUNNABLE
    return used > _BUSY or (is_runnable and used > _SOME)


def _digest(frames: tuple[Frame, ...]) -> str:
    text = "\n".join(f"{frame.file}:{frame.line}:{frame.function}" for frame in frames)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
