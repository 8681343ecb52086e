"""What a node accepts of a ring in which it is ordered to measure: known peers, and a bounded number of rounds."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck import timeouts
from ncclcheck.exchange.announcements import Caller, peers_faults
from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.exchange.probe.ring import RepeatedRounds, Ring

_MOST_PEERS = 1 << 17
_MOST_SHIFTS = 8
_MOST_NETWORKS = 64


def ring_faults(ring: Ring, again: RepeatedRounds | None, caller: Caller) -> Iterator[str]:
    """Yield why this node does not measure in that ring."""
    plan, peers = ring.plan, ring.peers
    if ring.places and not _are_places(ring, caller.ticket):
        yield "positions that are none of this ring"
    elif not 0 < len(peers) <= _MOST_PEERS or len({peer.ticket for peer in peers}) != len(peers):
        yield "peers that are not one each"
    elif not 0 <= plan.networks <= _MOST_NETWORKS or any(
        len(peer.targets) != plan.networks for peer in peers
    ):
        yield "a ring that does not have each network once per node"
    elif len(plan.shifts) > _MOST_SHIFTS or not all(0 < shift < ring.count for shift in plan.shifts):
        yield "rounds that are none of this ring"
    elif not (
        0 <= plan.warm_up_s <= timeouts.LINKS_WARM_UP_S * 2
        and 0 <= plan.window_s <= timeouts.LINKS_WINDOW_S * 2
    ):
        yield "transfers that take too long"
    elif not 0 <= plan.pings_s <= timeouts.LINKS_PINGS_S:
        yield "round trips that take too long"
    elif again is not None and not _is_of_ring(again, ring):
        yield "further rounds that are none of this ring"
    else:
        yield from peers_faults(tuple(_called(ring, again, caller.ticket)), caller)


def _are_places(ring: Ring, ticket: int) -> bool:
    """Return whether every peer has a position of its own in the ring, and no partner of this node is missing."""
    places = frozenset(ring.places)
    if not len(places) == len(ring.places) == len(ring.peers) or not 0 < ring.size <= _MOST_PEERS:
        return False
    own_place = ring.place_of(ticket)
    shifts = ring.plan.shifts[:_MOST_SHIFTS] if own_place is not None else ()
    partners = {((own_place or 0) + sign * shift) % ring.size for shift in shifts for sign in (1, -1)}
    return all(0 <= place < ring.size for place in places) and partners <= places


def _is_of_ring(again: RepeatedRounds, ring: Ring) -> bool:
    places = frozenset(ring.places or range(len(ring.peers)))
    return (
        0 <= again.first <= _MOST_PEERS
        and len(again.rounds) <= _MOST_PEERS
        and all(
            0 <= part.network < ring.plan.networks
            and all(
                source in places and target in places and source != target for source, target in part.pairs
            )
            for part in again.rounds
        )
    )


def _called(ring: Ring, again: RepeatedRounds | None, ticket: int) -> Iterator[Peer]:
    """Yield the peers that the node with this ticket calls in it."""
    place = ring.place_of(ticket)
    if place is None:
        return
    transfers = again.transfers() if again is not None else ()
    places = {target for _, _, source, target in transfers if source == place}
    places |= {(place + shift) % ring.count for shift in ring.plan.shifts}
    yield from (ring.at(number) for number in sorted(places))
