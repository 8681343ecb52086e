"""What was decided on a watched job, in one sentence: who, where in the code, since when, who waits."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.measure.watching.blocked import directions
from ncclcheck.measure.watching.decision import CALLS_JOINED
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.job.watched import Watch, WatchedRank

_MOST = 4


def sentence_on(watch: Watch) -> str:
    """Return the sentence on the decision."""
    match watch.decision:
        case "hang":
            return _hang(watch)
        case "died":
            return _died(watch)
        case "stopped":
            who = listed([f"{_name(rank)} {rank.reason}" for rank in watch.culprits], _MOST, last=", ")
            return f"{who}: the other ranks will wait for it"
        case "quiet":
            return _quiet(watch)
        case "silent":
            return _silent(watch)
    return "the job advances"


def ranks_words(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {text}"


def _hang(watch: Watch) -> str:
    since = f"nothing has advanced for {watch.since_s:.0f} s"
    waiting = _waiting(watch)
    call = "in a collective" if CALLS_JOINED in watch.waits_in else "in the same call"
    if not watch.culprits and watch.silent:
        return (
            f"the job hangs: {since}; {waiting}, all ranks that can be seen {call}; "
            f"{_hosts(watch.silent)} is not heard from{_lost(watch)}"
        )
    if not watch.culprits:
        where = _lost(watch) or ", so look at the network or the GPUs between them"
        return f"the job hangs: {since}; {waiting}, all ranks {call}: a collective that does not end{where}"
    culprits = [_placed(rank) for rank in watch.culprits]
    return f"the job hangs: {listed(culprits, _MOST, last=', ')}; {since}" + (
        f"; {waiting} for it" if waiting else ""
    )


def _lost(watch: Watch) -> str:
    texts = directions(watch.blocked, watch.hosts)
    return f": {'; '.join(texts)}" if texts else ""


def _silent(watch: Watch) -> str:
    return (
        f"{_hosts(watch.silent)} fell silent {watch.since_s:.0f} s ago: the watcher there ended or is not reached, "
        "so look whether the node and its network are up"
    )


def _hosts(hosts: Sequence[str]) -> str:
    return listed(hosts, _MOST, last=", ")


def _died(watch: Watch) -> str:
    first = watch.culprits[0]
    text = f"{_name(first)} {first.reason}" + (", first of all ranks" if watch.victims else "")
    return f"{text}; {ranks_words(watch.victims)} failed after it" if watch.victims else text


def _quiet(watch: Watch) -> str:
    text = f"nothing has advanced for {watch.since_s:.0f} s, and this is no hang as far as {_seen_by(watch)}"
    if watch.culprits:
        text += f": {listed([_placed(rank) for rank in watch.culprits], _MOST, last=', ')}"
    waiting = _waiting(watch)
    if waiting:
        text += f"; {waiting}" + ("" if watch.culprits else ": whoever they wait for is on another node")
    return text + (f"; {watch.remarks[0]}" if watch.remarks and not waiting else "")


def _seen_by(watch: Watch) -> str:
    return "this node tells" if len(watch.hosts) <= 1 else f"{len(watch.hosts)} nodes tell"


def _waiting(watch: Watch) -> str:
    if not watch.victims:
        return ""
    verb = "waits" if len(watch.victims) == 1 else "wait"
    return f"{ranks_words(watch.victims)} {verb} in {watch.waits_in or 'a collective'}"


def _name(rank: WatchedRank) -> str:
    name = "the process" if rank.rank is None else f"rank {rank.rank}"
    return f"{name} on {rank.host} (pid {rank.pid})"


def _placed(rank: WatchedRank) -> str:
    where = f" at {rank.file}:{rank.line} in {rank.function}" if rank.file else ""
    return f"{_name(rank)} {rank.reason or 'is'}{where}"
