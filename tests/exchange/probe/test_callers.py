"""Who calls whom, and where."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.probe.callers import called_by_each, routes_to
from ncclcheck.exchange.probe.reachability import Peer, Target


def test_only_as_many_call_nccls_listener_as_it_has_room_for() -> None:
    ours, nccl = Target("eth0", "10.0.0.1", 1), Target("eth0", "10.0.0.1", 2, "nccl", 2)
    peer = Peer(0, "a", (ours, nccl))
    callers = [Peer(ticket, str(ticket), ()) for ticket in (3, 5, 9)]
    pairs = [(1, 0), (2, 0), (3, 0), (0, 1)]
    called = called_by_each([peer, *callers], pairs)
    assert called == {0: (callers[0],), 3: (peer,), 5: (peer,), 9: (replace(peer, targets=(ours,)),)}


def test_of_many_peers_only_the_first_address_has_a_route() -> None:
    targets = (Target("lo", "127.0.0.1", 40001), Target("lo", "127.0.0.2", 40002))
    peers = [Peer(number, f"node{number}", targets) for number in range(66)]
    routes = routes_to(peers, ())
    assert len(routes) == 2 * 64 + 2
    assert routes[0].destination == "127.0.0.1"
