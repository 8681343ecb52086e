"""NC110 master-no-route."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.launch._master import (
    Sighting,
    first_address,
    hosts_of,
    master_answers,
    master_finding,
    suspect_text,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC110", "master-no-route", "Every node has a route to the master")
def master_no_route(snapshot: Snapshot) -> Iterator[Answer]:
    """The kernel of every node has a route to MASTER_ADDR, and no router or firewall reports it as unreachable.

    ## Why it matters
    Without a route nothing can connect. The same error comes back from a firewall that rejects with "administratively
    prohibited", and from a router or a neighbour that cannot find the host.

    ## How to fix
    Check the route (`ip route get`), its interface, and the firewall of node 0.

    ## Source
    connect(2): ENETUNREACH, EHOSTUNREACH; RFC 1812 5.2.7.1 (ICMP destination unreachable codes); icmp(7).
    """
    yield from master_answers(snapshot, "no-route", _finding)


def _finding(snapshot: Snapshot, seen: tuple[Sighting, ...]) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    suspect = suspect_text(snapshot, seen)
    address = first_address(path) or path.name
    return master_finding(
        seen,
        f"{named(hosts)} {verb(hosts, 'has', 'have')} no route to {seen[0].target}: a route is missing, "
        "the host is unreachable, or a firewall rejects the packets" + (f"; {suspect}" if suspect else ""),
        "a route, and an answer",
        Fix(
            "check the route to node 0 and the firewalls on it",
            (
                f"ip route get {address}",
                f"ip neighbour show {address}",
                "sudo nft list ruleset   # on node 0",
            ),
        ),
    )
