"""What every process claimed about its place in the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Snapshot


class Claim(Struct, frozen=True):
    """One process and the host it runs on."""

    host: str
    launch: Launch


@once_per_subject
def claims(snapshot: Snapshot) -> tuple[Claim, ...]:
    """Every process's claim: as received, or, for a node of which none is recorded, from its facts."""
    found = [Claim(host, launch) for launch, host in zip(snapshot.claims, snapshot.claim_hosts, strict=False)]
    heard = {claim.host for claim in found}
    found += [Claim(node.host, launch) for node, launch in snapshot.known("launch") if node.host not in heard]
    return tuple(found)


def not_claimed(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield the nodes whose claim is not known."""
    heard = {claim.host for claim in claims(snapshot)}
    mute = tuple(node.host for node in snapshot.nodes if node.host not in heard)
    if mute:
        yield NotKnown("how it was launched is not known", mute)
    if not snapshot.nodes and not heard:
        yield NotKnown("no node reported")
    yield from not_reported(snapshot)


def duplicated_node_ranks(seen: Sequence[Claim]) -> dict[int, tuple[str, ...]]:
    """Node ranks that several agents claim (same local rank too), each with their hosts, one entry per process."""
    places: dict[tuple[int, int], list[str]] = {}
    for claim in seen:
        places.setdefault((claim.launch.node_rank, claim.launch.local_rank), []).append(claim.host)
    twice: dict[int, tuple[str, ...]] = {}
    for (node_rank, _), hosts in places.items():
        if len(hosts) > 1:
            twice.setdefault(node_rank, tuple(hosts))
    return twice
