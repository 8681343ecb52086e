"""NC106 master-not-first-node."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.launch._master import (
    Sighting,
    first_address,
    hosts_of,
    master_answers,
    path_evidence,
    saw,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC106", "master-not-first-node", "MASTER_ADDR is an address of node 0")
def master_not_first_node(snapshot: Snapshot) -> Iterator[Answer]:
    """MASTER_ADDR belongs to the node with node rank 0, which is where the store is served.

    ## Why it matters
    Rank 0 opens the store on its own machine, whatever MASTER_ADDR says; the address is only used to connect. If it
    belongs to another node, every connection goes to a machine without a store. A node that has node 0's address as
    well, such as on a bridge for containers, connects to itself.

    ## How to fix
    Set MASTER_ADDR to an address of the node that is started with `--node-rank 0`, or give that node the rank 0. Take
    an address that two nodes have away from one of them.

    ## Source
    torch/distributed/rendezvous.py: rank 0 starts the TCPStore server; MASTER_ADDR is for clients.
    """
    yield from master_answers(snapshot, "not-first-node", _finding)


def _finding(snapshot: Snapshot, seen: tuple[Sighting, ...]) -> Finding:
    first = next((sighting for sighting in saw(snapshot, "serving") if sighting.node_rank == 0), None)
    if first is not None and first.path.is_local and first_address(first.path) == first_address(seen[0].path):
        return _duplicate(first, seen)
    owners = tuple(sighting for sighting in seen if sighting.node_rank != 0)
    blamed = owners or seen
    if owners:
        ranks = " and ".join(str(owner.node_rank) for owner in owners)
        summary = f"MASTER_ADDR {seen[0].target} is an address of {named(hosts_of(owners))}, which is node rank {ranks}"
    else:
        summary = f"MASTER_ADDR {seen[0].target} is not an address of {seen[0].host}, which is node rank 0"
    return Finding(
        "error",
        f"{summary}: node rank 0 serves the store, so no node will find it",
        hosts_of(blamed),
        path_evidence(seen, "an address of node rank 0"),
        (
            Fix(
                "set MASTER_ADDR to an address of node 0, or start the owner of this address with --node-rank 0"
            ),
        ),
    )


def _duplicate(first: Sighting, seen: tuple[Sighting, ...]) -> Finding:
    """Return the finding about nodes that have the address of node 0 as well, and so connect to themselves."""
    path = seen[0].path
    interface = "" if isinstance(path.interface, Missing) else path.interface
    hosts = hosts_of(seen)
    return Finding(
        "error",
        f"{named(hosts)} {verb(hosts, 'has', 'have')} the address of node 0, {first_address(path)}"
        f"{f' ({interface})' if interface else ''}, so {verb(hosts, 'it connects', 'they connect')} to "
        f"{verb(hosts, 'itself', 'themselves')} and not to {first.host}",
        hosts,
        path_evidence((first, *seen), "an address of node rank 0 alone"),
        (
            Fix(
                f"take the address away from {named(hosts)}: give its interface another subnet "
                "(for docker0: bip in /etc/docker/daemon.json)",
                (f"ip -brief address show to {first_address(path)}   # on {named(hosts)}",),
            ),
        ),
    )
