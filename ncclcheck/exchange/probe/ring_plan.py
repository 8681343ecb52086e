"""The ring in which nodes measure: who takes part, on which networks, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import Ring
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
        if probe.kind in ("tcp", "mtu") and probe.outcome != "ok" and probe.listener == "ncclcheck"
    }
    ways = {
        (network, place, partner): (
            peers[place].host,
            peers[partner].host,
            peers[partner].targets[network].address,
        )
        for _, network, place, partner in whole.transfers()
    }
    blocked = tuple(way for way, called in ways.items() if called in failed)
    return Ring(peers, plan, blocked) if len(blocked) < len(ways) else None
