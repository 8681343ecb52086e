"""NC211 peer-no-route."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.network._peers import peer_answers
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot

_FIX = Fix(
    "add routes between the nodes on this network, or make NCCL use a network that all nodes share",
    ("ip route get ADDRESS", "ip neighbour show", "sudo nft list ruleset"),
)


@check(
    "NC211",
    "peer-no-route",
    "Every node has a route to every other",
    needs=("interfaces",),
    nodes=2,
    met=True,
)
def peer_no_route(snapshot: Snapshot) -> Iterator[Answer]:
    """The kernel of every node has a route to the address that NCCL uses on every other node.

    ## Why it matters
    NCCL reports "No route to host" after a minute of retries, from one of many ranks. The cause is a missing route, a
    wrong subnet mask, a neighbour that does not answer, or a firewall that says "administratively prohibited".

    ## How to fix
    Run `ip route get` on the node that fails. Choose a network that all nodes share with NCCL_SOCKET_IFNAME.

    ## Source
    connect(2): ENETUNREACH, EHOSTUNREACH; RFC 1812 5.2.7.1.
    """
    yield from peer_answers(
        snapshot,
        "no-route",
        ("the kernel reports no route or an unreachable host, or a firewall sends that answer"),
        _FIX,
    )
