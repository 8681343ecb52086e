"""Which node probes which other nodes, and on which routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.facts.network.routes import source_for
from ncclcheck.measure.links.schedule import ALL_PAIRS_UP_TO
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, Route


def called_by_each(peers: Sequence[Peer], pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[Peer, ...]]:
    """Return by ticket the peers and targets that each node probes, of pairs (from, to) of positions."""
    called: dict[int, list[Peer]] = {peer.ticket: [] for peer in peers}
    callers: Counter[int] = Counter()
    for source, target in pairs:
        found = called[peers[source].ticket]
        found.append(peers[target].for_caller(callers[target], len(found)))
        callers[target] += 1
    return {ticket: tuple(found) for ticket, found in called.items()}


def routes_to(peers: Sequence[Peer], interfaces: Fact[tuple[Interface, ...]]) -> tuple[Route, ...]:
    """Return how the kernel would send to the addresses of each peer; of more than 64 peers, to their first ones."""
    known = () if isinstance(interfaces, Missing) else interfaces
    routes = []
    for number, peer in enumerate(peers):
        for target in peer.ours if number < ALL_PAIRS_UP_TO else peer.ours[:1]:
            source, interface = source_for(target.address, target.port, known)
            routes.append(Route(target.address, peer.host, source, interface))
    return tuple(routes)
