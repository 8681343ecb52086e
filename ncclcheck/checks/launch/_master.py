"""Every node's way to MASTER_ADDR:MASTER_PORT, from facts or from the word of a node that could not join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.checks.hosts import job_size, named, unread
from ncclcheck.checks.registry import Answer
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterOutcome, MasterPath
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Knock, Snapshot

# How far a node got on its path to node 0. A node that ended earlier says nothing about what lies behind.
_STAGES: tuple[tuple[MasterOutcome, ...], ...] = (
    ("torch-broken", "torch-late"),
    ("unresolvable",),
    ("loopback", "not-first-node"),
    ("port-in-use", "port-denied", "refused", "filtered", "no-route", "resolver-hangs", "loopback-down"),
    ("foreign", "other-key"),
    ("lost", "resolver-slow", "answered", "serving", "not-needed"),
)

_LAST_PORT = 65535


class Sighting(Struct, frozen=True):
    """How one node saw the master."""

    host: str
    node_rank: int
    path: MasterPath
    source: str

    @property
    def target(self) -> str:
        """`name:port`, with the address in brackets where the name is none itself."""
        where = f"{self.path.name}:{self.path.port}"
        address = first_address(self.path)
        return where if address in (None, self.path.name) else f"{where} ({address})"


Judge: TypeAlias = Callable[[Snapshot, tuple[Sighting, ...]], Finding]


def first_address(path: MasterPath) -> str | None:
    """Return the first address the name resolved to; None where it did not."""
    return None if isinstance(path.addresses, Missing) or not path.addresses else path.addresses[0]


@once_per_subject
def sightings(snapshot: Snapshot) -> tuple[Sighting, ...]:
    """All that is known, by node rank: facts of those who reported, claims of those who could only knock."""
    seen = [
        Sighting(node.host, node.node_rank, path, "this node's own attempt to reach the master")
        for node, path in snapshot.known("master")
    ]
    seen += [
        Sighting(silent.knock.host, silent.knock.node_rank, silent.knock.master, _datagram(silent.knock))
        for silent in snapshot.silent
        if not isinstance(silent.knock, Missing)
    ]
    return tuple(sorted(seen, key=lambda sighting: (sighting.node_rank, sighting.host)))


def _datagram(knock: Knock) -> str:
    unproven = f" from {knock.origin}, which nothing proves to be this node" if knock.origin else ""
    return (
        f"datagram to {knock.relay}{unproven}, passed on to node 0"
        if knock.relay
        else f"datagram to node 0{unproven}"
    )


def saw(snapshot: Snapshot, *outcomes: MasterOutcome) -> tuple[Sighting, ...]:
    """Return the nodes whose connection attempt to the master ended in one of `outcomes`."""
    return tuple(sighting for sighting in sightings(snapshot) if sighting.path.outcome in outcomes)


def hosts_of(seen: tuple[Sighting, ...]) -> tuple[str, ...]:
    """Return the hosts of those sightings, each once."""
    return tuple(dict.fromkeys(sighting.host for sighting in seen))


def master_answers(snapshot: Snapshot, outcome: MasterOutcome, judge: Judge) -> Iterator[Answer]:
    """Yield the finding of `judge` about the nodes whose attempt ended in `outcome`, then what is not known of it."""
    seen = saw(snapshot, outcome)
    if seen:
        yield judge(snapshot, seen)
    yield from not_seen(snapshot, outcome)


def master_finding(seen: tuple[Sighting, ...], summary: str, expected: str, fix: Fix) -> Finding:
    """Return the error about `seen`, with the connection attempt of each node as evidence."""
    hint = node_0_elsewhere(seen)
    if hint:
        summary, fix = f"{summary}; {hint}", _correct_name(seen)
    return Finding("error", summary, hosts_of(seen), path_evidence(seen, expected), (fix,))


def node_0_elsewhere(seen: tuple[Sighting, ...]) -> str:
    """Return where node 0 serves instead, if that is known of all of `seen`; the claim with its source."""
    places = tuple(dict.fromkeys(sighting.path.serves_at for sighting in seen))
    if not places or not all(places):
        return ""
    return f"a datagram from {named(places)} says that node 0 serves there"


def _correct_name(seen: tuple[Sighting, ...]) -> Fix:
    path = seen[0].path
    return Fix(
        f"on {named(hosts_of(seen))} make MASTER_ADDR {path.name!r} lead to {path.serves_at}, or set that address",
        (f"getent ahosts {path.name}   # on {named(hosts_of(seen))}",),
        {"MASTER_ADDR": path.serves_at},
        f"make sure first that {path.serves_at} is node 0: a datagram proves nothing",
    )


def not_seen(snapshot: Snapshot, outcome: MasterOutcome) -> Iterator[NotKnown | NotApplicable]:
    """Why the question whether `outcome` is anywhere has no complete answer.

    One node only, no facts, a node without a message, or one whose path ended before `outcome` was possible.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node does not connect to a master")
        return
    yield from unread(snapshot, "master")
    mute = tuple(silent.host for silent in snapshot.silent if isinstance(silent.knock, Missing))
    if mute:
        yield NotKnown("did not report", mute)
    if snapshot.viewpoint == "one-node" and not snapshot.silent:
        why = snapshot.lost_run or "it did not join the others"
        yield NotKnown(f"only this node's own attempt is known: {why}")
    if not snapshot.nodes and not snapshot.silent:
        yield NotKnown("no node reported")
    for sighting in sightings(snapshot):
        if _stage(sighting.path.outcome) < _stage(outcome):
            yield NotKnown(
                f"this node failed to reach node 0 at an earlier stage ({sighting.path.outcome})",
                (sighting.host,),
            )


@cache
def _stage(outcome: MasterOutcome) -> int:
    return next(stage for stage, outcomes in enumerate(_STAGES) if outcome in outcomes)


def path_evidence(seen: tuple[Sighting, ...], expected: str) -> tuple[Evidence, ...]:
    """Return what each node did and got: target, source address and interface, the kernel's answer."""
    return tuple(
        Evidence(
            (sighting.host,),
            f"connection to {sighting.target} from {_from(sighting.path)}",
            _observed(sighting.path),
            expected,
            sighting.source,
        )
        for sighting in seen
    )


def _from(path: MasterPath) -> str:
    address = "an unknown address" if isinstance(path.source_address, Missing) else path.source_address
    return address if isinstance(path.interface, Missing) else f"{address} on {path.interface}"


def _observed(path: MasterPath) -> str:
    detail = f": {path.detail}" if path.detail else ""
    tries = f" ({path.attempts} attempts in {path.seconds:.1f} s)" if path.attempts > 1 else ""
    return f"{path.outcome}{detail}{tries}"


def suspect_text(snapshot: Snapshot, seen: tuple[Sighting, ...]) -> str:
    """Return what to suspect: the master, if no node connected, or the path of those few, if others did."""
    through = hosts_of(tuple(sighting for sighting in saw(snapshot, "answered") if sighting.node_rank != 0))
    if through:
        return f"{named(through)} connected, so node 0 serves: check the path from the nodes that did not"
    if len(hosts_of(seen)) > 1:
        return "no other node connected: check node 0 first"
    return ""


def another_port(port: int) -> int:
    """Return a neighbour of `port` to propose instead."""
    return port + 1 if port < _LAST_PORT else port - 1
