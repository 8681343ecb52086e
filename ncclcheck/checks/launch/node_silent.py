"""NC101 node-silent."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, not_reported, verb
from ncclcheck.checks.launch._builds import build_hint
from ncclcheck.checks.launch._claims import claims, duplicated_node_ranks
from ncclcheck.checks.launch._master import saw
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Silent, Snapshot

_PHASES = {
    "join": "did not join",
    "facts": "joined, but sent no facts",
    "probes": "sent facts, but no result of the connection tests",
    "confirm": "did not answer when the advice was confirmed",
    "end": "took part, but did not answer at the end of the run",
}


@check("NC101", "node-silent", "Every node of the job joined and answered")
def node_silent(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node that the launcher started joined this run and answered until its end.

    ## Why it matters
    `init_process_group` and `ncclCommInitRank` wait for every rank. One node that does not join blocks all others
    until a timeout of 10 to 30 minutes, and the log of a waiting rank does not name the missing node.

    ## How to fix
    On the named node, check that the launcher started the command, what it prints, and that it can reach the master.
    A node that could not join prints its own report. A silent node may be fine, so this is a warning, and the run
    ends with exit code 3 (inconclusive).

    ## Source
    torch's TCPStore and NCCL's bootstrap need the whole world (torch/csrc/distributed/c10d, NCCL src/bootstrap.cc).
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node")
        return
    doubt = _doubt(snapshot)
    if doubt:
        yield NotKnown(doubt)
        return
    if snapshot.viewpoint == "one-node":
        lost = saw(snapshot, "lost")
        if lost:
            yield _lost(snapshot)
        else:
            yield from not_reported(snapshot)
        return
    if snapshot.store_lost:
        yield NotKnown(snapshot.store_lost)
    groups: dict[tuple[str, str], list[Silent]] = {}
    unreached = () if isinstance(snapshot.unreached, Missing) else snapshot.unreached
    # host-unreachable says more, and so does meeting-place
    explained = {missing.node_rank for missing in unreached}
    explained |= {meeting.node_rank for meeting in snapshot.meetings if meeting.outcome != "met"}
    for silent in snapshot.silent:
        if silent.node_rank not in explained:
            groups.setdefault((silent.phase, _why(silent)), []).append(silent)
    for (phase, why), silents in groups.items():
        yield _finding(snapshot, phase, why, silents)
    if saw(snapshot, "lost") and not any(silent.node_rank == 0 for silent in snapshot.silent):
        yield _lost(snapshot)


def _doubt(snapshot: Snapshot) -> str:
    """Return why it is not known who is silent; empty where it is."""
    if snapshot.store_changed:
        return "another program writes into the store of this run"
    paused = [still for still in snapshot.stood_still if still.is_listener]
    return f"{paused[0].sentence}, so it is not known who was silent meanwhile" if paused else ""


def _why(silent: Silent) -> str:
    if isinstance(silent.knock, Missing):
        return ""
    path = silent.knock.master
    detail = f", {path.detail}" if path.detail else ""
    return f"says it cannot reach {path.name}:{path.port} ({path.outcome}{detail})"


def _finding(snapshot: Snapshot, phase: str, why: str, silents: list[Silent]) -> Finding:
    hosts = tuple(silent.host for silent in silents)
    ranks = ", ".join(str(silent.node_rank) for silent in silents)
    waited_s = max(silent.waited_s for silent in silents)
    summary = (
        f"{named(hosts)} (node rank {ranks}) {_PHASES[phase]}{f' in {waited_s:.0f} s' if waited_s >= 1 else ''}, "
        "so the job would wait for it until its timeout"
    )
    evidence = Evidence(hosts, "last word", why or "none", "an answer", f"this run, phase {phase!r}")
    hints = [
        f"{silents[0].host} {why}" if why else "",
        _launch_hint(snapshot),
        _callers_hint(snapshot, silents),
        _refusal_hint(snapshot, hosts),
        build_hint(snapshot, hosts),
    ]
    hint_text = "; ".join(hint for hint in hints if hint)
    return Finding(
        "warning",
        f"{summary}: {hint_text}" if hint_text else summary,
        hosts,
        (evidence,),
        (Fix(f"check that the launcher started ncclcheck on {named(hosts)}, and read its output there"),),
    )


def _launch_hint(snapshot: Snapshot) -> str:
    seen = claims(snapshot)
    sizes = sorted({claim.launch.nnodes for claim in seen})
    if len(sizes) > 1:
        return f"the nodes that joined do not agree on the number of nodes ({', '.join(map(str, sizes))})"
    twice = duplicated_node_ranks(seen)
    if twice:
        rank, hosts = next(iter(twice.items()))
        return f"{named(hosts)} both joined as node rank {rank}, so another rank is missing"
    return ""


def _callers_hint(snapshot: Snapshot, silents: list[Silent]) -> str:
    """What node 0's kernel saw of nodes that could not even tell why they did not come."""
    mute = [silent for silent in silents if silent.phase == "join" and isinstance(silent.knock, Missing)]
    if not mute or not snapshot.unanswered_callers:
        return ""
    return (
        f"connection requests from {named(snapshot.unanswered_callers)} arrive at node 0, whose answers do not come "
        "back: a firewall there, or on the path to it, drops the answers"
    )


def _refusal_hint(snapshot: Snapshot, hosts: tuple[str, ...]) -> str:
    reasons = [refused.reason for refused in snapshot.refused if refused.host in hosts]
    return f"its message was refused: {reasons[0]}" if reasons else ""


def _lost(snapshot: Snapshot) -> Finding:
    seen = saw(snapshot, "lost")
    path = seen[0].path
    lost = snapshot.lost_first_node
    first = next((claim.launch.hosts[0] for claim in claims(snapshot) if claim.launch.hosts), path.name)
    first = next((meeting.first for meeting in snapshot.meetings if meeting.first), first)
    first = first if lost is None else lost.host or first
    hosts = tuple(sighting.host for sighting in seen)
    evidence = Evidence(
        hosts,
        f"store at {path.name}:{path.port}",
        path.detail or "answered, then stopped answering",
        "answers",
        "this run",
    )
    when = f" {lost.when}" if lost is not None else ""
    return Finding(
        "warning",
        f"node 0 ({first}) answered {named(hosts)} and then stopped answering{when}: its process ended or hangs, "
        f"or the network to it is cut, so {verb(hosts, 'this node', 'these nodes')} cannot go on",
        (first,),
        (evidence,),
        (Fix(f"read the output of ncclcheck on {first}"),),
    )
