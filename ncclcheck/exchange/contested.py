"""Places for which two processes answer, or one whose messages were replaced: whoever reaches the store can do that.

What is found here accuses no node. A message that does not fit the others is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ncclcheck.exchange.announcements import Announced
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, Hello, read_message
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.snapshot import Contested, Snapshot


def without_ghosts(
    members: tuple[Member, ...], reports: Mapping[int, bytes]
) -> tuple[tuple[Member, ...], tuple[Contested, ...]]:
    """Return the members without those that only said hello for a place whose process reported; and these places."""
    places: dict[tuple[int, int], list[Member]] = {}
    for member in members:
        places.setdefault((member.launch.node_rank, member.launch.local_rank), []).append(member)
    ghosts: set[int] = set()
    contested = []
    for (node_rank, _), claimants in places.items():
        there = [member for member in claimants if member.ticket in reports]
        gone = [member for member in claimants if member.ticket not in reports]
        if there and gone:
            ghosts |= {member.ticket for member in gone}
            names = ", ".join(dict.fromkeys(member.host for member in gone))
            reason = (
                f"{len(gone)} more said hello as node rank {node_rank} (host {names}), and reported no facts"
            )
            contested.append(Contested(there[0].host, node_rank, "hello", reason[:300]))
    return tuple(member for member in members if member.ticket not in ghosts), tuple(contested)


def replaced_reports(
    members: tuple[Member, ...],
    reports: Mapping[int, bytes],
    announcements: Mapping[int, bytes],
    again: Callable[[int, str], bytes | None] = lambda *_: None,
) -> tuple[dict[int, bytes], tuple[Contested, ...]]:
    """Return the reports that are those which their nodes announced; and the places of the others.

    `again` reads the report of a ticket once more, and returns it if it has this digest: what somebody wrote before the
    node did is then replaced by what the node wrote.
    """
    accepted, contested = dict(reports), []
    for member in members:
        report, announced = reports.get(member.ticket), _announced(announcements.get(member.ticket))
        if report is None or announced is None or announced.facts in ("", digest_of(report)):
            continue
        own_report = again(member.ticket, announced.facts)
        if own_report is not None:
            accepted[member.ticket] = own_report
            continue
        del accepted[member.ticket]
        reason = "the facts in its place are not those that it announced"
        contested.append(Contested(member.host, member.launch.node_rank, "facts", reason))
    return accepted, tuple(contested)


def of_another_run(hellos: Mapping[int, Hello], own_ticket: int | None) -> dict[int, str]:
    """Return the tickets whose process was told another nonce than node 0 wrote, with the reason."""
    own_hello = hellos.get(own_ticket) if own_ticket is not None else None
    if own_hello is None:
        return {}
    reason = "it was told another run than this one: somebody replaced what node 0 wrote"
    return {ticket: reason for ticket, hello in hellos.items() if hello.run != own_hello.run}


def with_late_claims(snapshot: Snapshot, late: Sequence[Hello]) -> Snapshot:
    """Add the claims of processes that joined late for a place that is taken: the job has one process too many.

    Where the first process said hello and then reported nothing, it took the place of the late one.
    A process that comes late to its own place was silent when it counted, and is reported as that.
    """
    taken = {(claim.node_rank, claim.local_rank) for claim in snapshot.claims}
    ranks = {claim.rank for claim in snapshot.claims}
    clashing = [
        hello
        for hello in late
        if (hello.launch.node_rank, hello.launch.local_rank) in taken
        and (hello.launch.told == "place" or hello.launch.rank in ranks)
    ]
    mute = {silent.node_rank: silent.host for silent in snapshot.silent if silent.phase == "facts"}
    displaced = [hello for hello in clashing if hello.launch.is_agent and hello.launch.node_rank in mute]
    clashing = [hello for hello in clashing if hello not in displaced]
    reason = "somebody (host {}) said hello in its place before it came, and reported no facts"
    contested = (
        Contested(hello.host, rank, "hello", reason.format(mute[rank])[:300])
        for hello in displaced
        for rank in (hello.launch.node_rank,)
    )
    return replace(
        snapshot,
        claims=(*snapshot.claims, *(hello.launch for hello in clashing)),
        claim_hosts=(*snapshot.claim_hosts, *(hello.host for hello in clashing)),
        contested=(*snapshot.contested, *contested),
    )


def _announced(data: bytes | None) -> Announced | None:
    try:
        return None if data is None else read_message(data, Announced, SMALL_LIMIT_BYTES)
    except DecodeError:
        return None
