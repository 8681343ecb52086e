"""What a job that stands still is: a hang with a culprit, or ranks that are busy elsewhere (quiet). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.measure.watching.progress import is_still
from ncclcheck.measure.watching.stacks import grouped, is_in_collective, own_frame, waiting_call
from ncclcheck.model.job.watched import Frame, Look, RankLook, Watch, WatchDecision, WatchedRank

Stacks = Mapping[int, tuple[Frame, ...]]
_BUSY = 0.5  # of a core: the rank computes
_STOPPED, _IN_KERNEL = ("T", "t"), "D"


class Studied(Struct, frozen=True):
    """Two looks at a frozen job, with the stacks by process id at each; `world_size` 0: not known.

    `ended` are ranks that ended before, with how.
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


def decide(studied: Studied) -> Watch:
    """Return what the frozen job is: ok (it moves after all), quiet, or hang with the culprits."""
    ranks = {rank.pid: rank for rank in studied.after.ranks}
    earlier = {rank.pid: rank for rank in studied.before.ranks}
    read = [pid for pid in ranks if studied.second.get(pid) and pid in earlier]
    if not read:
        why = "no stack could be read, so nothing tells whether the ranks wait for each other"
        return _watch(studied, "quiet", remarks=(*studied.remarks, why))
    seconds = max(studied.after.at_s - studied.before.at_s, 1e-3)
    inside = [pid for pid in read if is_in_collective(studied.second[pid])]
    if _moves(studied, read, inside, seconds):
        return _watch(studied, "ok")
    outside = [pid for pid in read if pid not in inside]
    if not inside:
        return _watch(studied, "quiet", [_seen(studied, ranks[pid]) for pid in outside])
    busy = [pid for pid in outside if (ranks[pid].cpu_s - earlier[pid].cpu_s) / seconds > _BUSY]
    if busy:
        return _watch(studied, "quiet", [_seen(studied, ranks[pid], "computes") for pid in busy], inside)
    if outside:
        culprits = [_seen(studied, ranks[pid]) for pid in outside]
        return _watch(studied, "hang", culprits, inside)
    return _all_inside(studied, ranks, inside)


def stands(before: Look, after: Look, host: str) -> tuple[WatchedRank, ...]:
    """Return the ranks that were stopped, or stuck in the kernel, at both looks and got nowhere in between."""
    earlier = {rank.pid: rank for rank in before.ranks}
    found = []
    for rank in after.ranks:
        then = earlier.get(rank.pid)
        if then is None or then.state != rank.state or then.switches != rank.switches:
            continue
        if rank.state in _STOPPED:
            why = "is stopped (state T: SIGSTOP, or a debugger)"
        elif rank.state == _IN_KERNEL and (then.cpu_s, then.io_bytes) == (rank.cpu_s, rank.io_bytes):
            why = "is stuck in the kernel (state D: a file system or a driver does not answer)"
        else:
            continue
        found.append(WatchedRank(rank.rank, host, rank.pid, reason=why))
    return tuple(found)


def _moves(studied: Studied, read: Sequence[int], inside: Sequence[int], seconds: float) -> bool:
    """Return True if a stack changed, or a rank inside a collective woke up: then it gets somewhere."""
    if any(studied.first.get(pid) != studied.second[pid] for pid in read):
        return True
    earlier = {rank.pid: rank for rank in studied.before.ranks}
    return any(
        not is_still(earlier[rank.pid], rank, seconds) for rank in studied.after.ranks if rank.pid in inside
    )


def _all_inside(studied: Studied, ranks: Mapping[int, RankLook], inside: Sequence[int]) -> Watch:
    if studied.ended:
        return _watch(studied, "hang", studied.ended, inside)
    calls: dict[str, list[int]] = {}
    for pid in inside:
        calls.setdefault(waiting_call(studied.second[pid]), []).append(pid)
    if len(calls) > 1:
        fewest = min(len(pids) for pids in calls.values())
        odd = [(call, pid) for call, pids in calls.items() if len(pids) == fewest for pid in pids]
        culprits = [_seen(studied, ranks[pid], f"calls another collective ({call})") for call, pid in odd]
        named = {culprit.pid for culprit in culprits}
        return _watch(studied, "hang", culprits, [pid for pid in inside if pid not in named])
    if studied.world_size == len(ranks) == len(inside) > 1:
        return _watch(studied, "hang", (), inside)
    return _watch(studied, "quiet", (), inside)  # whoever is missing is not on this node


def _watch(
    studied: Studied,
    decision: WatchDecision,
    culprits: Sequence[WatchedRank] = (),
    inside: Sequence[int] = (),
    remarks: tuple[str, ...] = (),
) -> Watch:
    rank_of = {look.pid: look.rank for look in studied.after.ranks}
    victims = sorted(rank for pid in inside if (rank := rank_of[pid]) is not None)
    calls = [waiting_call(studied.second[pid]) for pid in inside]
    stacks = {rank: studied.second.get(pid, ()) for pid, rank in rank_of.items() if rank is not None}
    return Watch(
        decision,
        round(studied.still_s, 1),
        tuple(culprits),
        tuple(victims),
        groups=grouped({rank: frames for rank, frames in stacks.items() if frames}),
        waits_in=max(calls, key=calls.count) if calls else "",
        remarks=remarks or studied.remarks,
    )


def _seen(studied: Studied, rank: RankLook, reason: str = "") -> WatchedRank:
    frame = own_frame(studied.second[rank.pid])
    if frame is None:
        return WatchedRank(rank.rank, studied.host, rank.pid, reason=reason)
    return WatchedRank(
        rank.rank, studied.host, rank.pid, frame.file, frame.line, frame.function, reason=reason
    )
