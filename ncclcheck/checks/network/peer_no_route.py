"""NC211 peer-no-route."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.network._peers import evidence, peer_answers
from ncclcheck.checks.network._reach import Blame, without_route
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Probe, Snapshot

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
    joined=True,
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
    routeless = without_route(snapshot)

    def tell(explanation: Blame) -> Finding | None:
        lacking = [probe for probe in explanation.directions if (probe.from_host, probe.to_host) in routeless]
        return _missing_route(lacking, explanation) if lacking else None

    yield from peer_answers(
        snapshot,
        "no-route",
        ("the kernel reports no route or an unreachable host, or a firewall sends that answer"),
        _FIX,
        tell,
    )


def _missing_route(lacking: list[Probe], explanation: Blame) -> Finding:
    """Say which nodes lack the route: they can neither connect nor answer, so the other direction fails with it."""
    hosts = tuple(dict.fromkeys(probe.from_host for probe in lacking))
    targets = tuple(dict.fromkeys(probe.to_host for probe in lacking))
    first = lacking[0]
    return Finding(
        "error",
        f"{named(hosts)} {verb(hosts, 'has', 'have')} no route to {named(targets)} ({first.address}): "
        f"{verb(hosts, 'it', 'they')} can neither connect nor answer, so no connection between them works",
        hosts,
        evidence(explanation.directions),
        (
            Fix(
                f"add a route to {first.address} on {named(hosts)}, or mend the subnet mask there",
                (
                    f"ip route get {first.address}   # on {first.from_host}",
                    "ip -brief address   # is the prefix length that of the other nodes?",
                ),
            ),
        ),
    )
