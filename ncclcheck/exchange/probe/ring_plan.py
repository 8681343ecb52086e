"""The ring in which nodes measure: who takes part, on which networks, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import RepeatedRounds, Ring
from ncclcheck.exchange.roster import Member
from ncclcheck.measure.links.network_rates import Places
from ncclcheck.measure.links.rounds import plan_rounds
from ncclcheck.model.snapshot import Probe


def plan_ring(
    agents: Sequence[Member],
    targets: Mapping[int, tuple[Target, ...]],
    networks: Iterable[Places],
    reach: Iterable[Probe],
) -> Ring | None:
    """Return the nodes by rank, with their listeners in every network; None where there is nothing to be measured.

    `reach` says which connections failed: those are left out, and the rest is measured.
    """
    listening = {
        agent.host: {
            (target.interface, target.address): target
            for target in targets.get(agent.ticket, ())
            if target.kind == "ours"
        }
        for agent in agents
    }
    listened = [
        places for places in networks if all(places.get(host) in found for host, found in listening.items())
    ]
    plan = plan_rounds(len(agents), len(listened))
    peers = tuple(
        Peer(
            agent.ticket,
            agent.host,
            tuple(listening[agent.host][places[agent.host]] for places in listened[: plan.networks]),
        )
        for agent in agents
    )
    whole = Ring(peers, plan)
    failed = {
        (probe.from_host, probe.to_host, probe.address)
        for probe in reach
        if probe.kind in ("tcp", "mtu")
        and probe.outcome != "ok"
        and probe.listener == "ncclcheck"
        and not probe.closed_ports
    }
    host_pairs = {
        (network, place, partner): (
            peers[place].host,
            peers[partner].host,
            peers[partner].targets[network].address,
        )
        for _, network, place, partner in whole.transfers()
    }
    blocked = tuple(connection for connection, called in host_pairs.items() if called in failed)
    return Ring(peers, plan, blocked) if len(blocked) < len(host_pairs) else None


def ring_of_each(ring: Ring, again: RepeatedRounds | None) -> dict[int, tuple[Ring, RepeatedRounds | None]]:
    """Return what each node needs of the ring, and of the repeated rounds, by ticket: itself and its partners."""
    if again is None:
        return {peer.ticket: (_part(ring, place, ()), None) for place, peer in enumerate(ring.peers)}
    rounds_of_place: dict[int, list[tuple[int, tuple[int, int]]]] = {
        place: [] for place in range(len(ring.peers))
    }
    for number, repeated in enumerate(again.rounds):
        for pair in repeated.pairs:
            for place in pair:
                rounds_of_place[place].append((number, pair))
    parts: dict[int, tuple[Ring, RepeatedRounds | None]] = {}
    for place, mine in rounds_of_place.items():
        rounds = tuple(
            replace(repeated, pairs=tuple(pair for among, pair in mine if among == number))
            for number, repeated in enumerate(again.rounds)
        )
        called = {end for _, pair in mine for end in pair}
        parts[ring.peers[place].ticket] = (_part(ring, place, called), replace(again, rounds=rounds))
    return parts


def _part(ring: Ring, place: int, further: Iterable[int]) -> Ring:
    shifts = (*ring.plan.shifts, *(-shift for shift in ring.plan.shifts))
    places = tuple(sorted({place, *further, *((place + shift) % ring.count for shift in shifts)}))
    blocked = tuple(connection for connection in ring.blocked if place in connection[1:])
    return replace(
        ring,
        peers=tuple(ring.peers[number] for number in places),
        blocked=blocked,
        places=places,
        size=len(ring.peers),
    )
