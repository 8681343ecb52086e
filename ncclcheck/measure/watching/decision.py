"""What a job that stands still is: a hang with a culprit, or ranks that are busy elsewhere (quiet). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.watching.node_study import Studied, node_study
from ncclcheck.model.job.together import NodeStudy, RankStudy
from ncclcheck.model.job.watched import Frame, Look, StackGroup, Watch, WatchDecision, WatchedRank

_STOPPED, _IN_KERNEL = ("T", "t"), "D"
CALLS_JOINED = " or "  # of ranks that wait in several calls
_MOST_CALLS = 3
_MOST_GROUPS = 32
_MOST_REMARKS = 8
_MOST_SENT, _MOST_NAMES_SENT = (
    64,
    4096,
)  # as many ranks and links, and as many numbers and hosts: a few 100 KB
GRAVITY = ("ok", "quiet", "silent", "stopped", "died", "hang")


class JobStudy(Struct, frozen=True):
    """All nodes that were studied at about the same time, and those whose watchers stopped answering."""

    nodes: tuple[NodeStudy, ...]
    silent: tuple[str, ...] = ()

    @property
    def ranks(self) -> list[tuple[str, RankStudy]]:
        """Return all ranks, each with its host."""
        return [(node.host, rank) for node in self.nodes for rank in node.ranks]

    @property
    def ended(self) -> tuple[WatchedRank, ...]:
        """Return the ranks that ended before, and are not there again."""
        return tuple(rank for node in self.nodes for rank in node.ended)


_Ranks = Sequence[tuple[str, RankStudy]]


def decide(studied: Studied) -> Watch:
    """Return what the frozen job is by the ranks of one node: ok (it moves), quiet, or hang with the culprits."""
    return decide_job(JobStudy((node_study(studied),)))


def decide_job(job: JobStudy) -> Watch:
    """Return what the frozen job is by all its ranks: ok (it moves after all), quiet, or hang with the culprits."""
    read = [(host, rank) for host, rank in job.ranks if rank.stack]
    if not read:
        why = "no stack could be read, so nothing tells whether the ranks wait for each other"
        return _watch(job, "quiet", remarks=(why,))
    if any(rank.moved for _, rank in read) or any(node.advances for node in job.nodes):
        return _watch(job, "ok")
    inside = [(host, rank) for host, rank in read if rank.inside]
    outside = [(host, rank) for host, rank in read if not rank.inside]
    if not inside:
        return _watch(job, "quiet", [_seen(host, rank) for host, rank in outside])
    computing = [(host, rank) for host, rank in outside if rank.computes]
    if computing:
        return _watch(job, "quiet", [_seen(host, rank, "computes") for host, rank in computing], inside)
    if outside:
        return _watch(job, "hang", [_seen(host, rank) for host, rank in outside], inside)
    return _all_inside(job, inside)


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


def after_news(before: Watch, news: Watch) -> Watch:
    """Return what holds after node 0's news: less grave news leaves a hang or a stopped rank what it is."""
    if news.decision in ("ok", "died") or GRAVITY.index(news.decision) >= GRAVITY.index(before.decision):
        return news
    return before


def shortened(watch: Watch) -> Watch:
    """Return the decision as other nodes get it: without stacks, long lists cut, and how much is left out."""
    cut = {name: getattr(watch, name)[:_MOST_SENT] for name in ("culprits", "blocked", "remarks")}
    cut |= {name: getattr(watch, name)[:_MOST_NAMES_SENT] for name in ("victims", "hosts", "silent")}
    left = [
        f"{len(getattr(watch, name)) - len(entries)} more {name} are told by node 0's watcher"
        for name, entries in cut.items()
        if len(entries) < len(getattr(watch, name))
    ]
    return replace(watch, **cut | {"groups": (), "remarks": (*cut["remarks"], *left)})


def with_victims(died: Watch, ended: Sequence[WatchedRank]) -> Watch:
    """Return the decision on a failure with those that failed later as its victims; the culprits are none."""
    culprits = {rank.rank for rank in died.culprits}
    victims = {rank.rank for rank in ended if rank.rank is not None} - culprits
    return replace(died, victims=tuple(sorted(victims | set(died.victims))))


def _all_inside(job: JobStudy, inside: _Ranks) -> Watch:
    if job.ended:
        return _watch(job, "hang", job.ended, inside)
    calls = Counter(rank.call for _, rank in inside)
    stuck = any(link.unacknowledged for node in job.nodes for link in node.blocked)
    if len(calls) > 1 and not (
        stuck or job.silent
    ):  # else some are only a call ahead of those that the network holds
        fewest = min(calls.values())
        odd = [(host, rank) for host, rank in inside if calls[rank.call] == fewest]
        culprits = [_seen(host, rank, f"calls another collective ({rank.call})") for host, rank in odd]
        return _watch(
            job, "hang", culprits, [(host, rank) for host, rank in inside if calls[rank.call] > fewest]
        )
    world_size = max((node.world_size for node in job.nodes), default=0)
    if stuck or job.silent or (world_size == len(job.ranks) == len(inside) > 1):
        return _watch(job, "hang", (), inside)
    return _watch(job, "quiet", (), inside)  # whoever is missing is not on these nodes


def _watch(
    job: JobStudy,
    decision: WatchDecision,
    culprits: Sequence[WatchedRank] = (),
    inside: _Ranks = (),
    remarks: tuple[str, ...] = (),
) -> Watch:
    calls = Counter(rank.call for _, rank in inside)
    node_remarks = tuple(dict.fromkeys(remark for node in job.nodes for remark in node.remarks))
    return Watch(
        decision,
        round(max((node.still_s for node in job.nodes), default=0.0), 1),
        tuple(culprits),
        tuple(sorted(rank.rank for _, rank in inside if rank.rank is not None)),
        groups=_groups(job),
        waits_in=CALLS_JOINED.join(call for call, _ in calls.most_common(1 if culprits else _MOST_CALLS)),
        remarks=(*node_remarks[:_MOST_REMARKS], *remarks),
        hosts=tuple(dict.fromkeys(node.host for node in job.nodes)),
        silent=job.silent,
        blocked=tuple(link for node in job.nodes for link in node.blocked),
    )


def _groups(job: JobStudy) -> tuple[StackGroup, ...]:
    """Return the groups of ranks with equal stacks, the smallest group first: the odd one out."""
    frames: dict[str, tuple[Frame, ...]] = {}
    for node in job.nodes:
        frames.update(node.stacks)
    ranks_of: dict[tuple[str, bool], list[int]] = {}
    for _, rank in job.ranks:
        if rank.stack and rank.rank is not None:
            ranks_of.setdefault((rank.stack, rank.inside), []).append(rank.rank)
    groups = [
        StackGroup(tuple(sorted(ranks)), frames.get(stack, ()), inside)
        for (stack, inside), ranks in ranks_of.items()
    ]
    return tuple(sorted(groups, key=lambda group: (len(group.ranks), group.ranks))[:_MOST_GROUPS])


def _seen(host: str, rank: RankStudy, reason: str = "") -> WatchedRank:
    if rank.at is None:
        return WatchedRank(rank.rank, host, rank.pid, reason=reason)
    return WatchedRank(rank.rank, host, rank.pid, rank.at.file, rank.at.line, rank.at.function, reason=reason)
