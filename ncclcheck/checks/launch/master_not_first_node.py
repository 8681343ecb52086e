"""NC106 master-not-first-node."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._master import Sighting, hosts_of, master_answers, path_evidence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC106", "master-not-first-node", "MASTER_ADDR is an address of node 0")
def master_not_first_node(snapshot: Snapshot) -> Iterator[Answer]:
    """MASTER_ADDR belongs to the node with node rank 0, which is where the store is served.

    ## Why it matters
    Rank 0 opens the store on its own machine, whatever MASTER_ADDR says; the address is only used to connect. If it
    belongs to another node, every connection goes to a machine without a store.

    ## How to fix
    Set MASTER_ADDR to an address of the node that is started with `--node-rank 0`, or give that node the rank 0.

    ## Source
    torch/distributed/rendezvous.py: rank 0 starts the TCPStore server; MASTER_ADDR is for clients.
    """
    yield from master_answers(snapshot, "not-first-node", _finding)


def _finding(_snapshot: Snapshot, seen: tuple[Sighting, ...]) -> Finding:
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
