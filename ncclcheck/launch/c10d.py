"""Which node torch's c10d rendezvous gives rank 0, and by which name every worker will call it."""

from __future__ import annotations

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Node, Snapshot


def first_by_name(snapshot: Snapshot) -> tuple[str, str] | Missing:
    """Return name and host of the node that gets rank 0: torch sorts the nodes by their --local-addr or FQDN.

    (torch/distributed/elastic/rendezvous/dynamic_rendezvous.py: _NodeDesc, _mark_rendezvous_complete; the workers'
    MASTER_ADDR is that name: rendezvous/api.py, RendezvousStoreInfo.build.)
    """
    names: list[tuple[str, str]] = []
    for node in snapshot.nodes:
        name = _name_of(node)
        if isinstance(name, Missing):
            return Missing(name.missing, f"how torch calls {node.host}: {name.detail}")
        names.append((name, node.host))
    return min(names) if names else Missing("absent", "no node reported")


def _name_of(node: Node) -> Fact[str]:
    launch, names = node.facts.launch, node.facts.names
    if not isinstance(launch, Missing) and launch.local_addr:
        return launch.local_addr
    return names if isinstance(names, Missing) else names.fqdn
