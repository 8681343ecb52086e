"""Nodes that share a host name, distinguished in a sentence by address and node rank."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.checks.chosen import chosen
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.formats.shared_names import shared_names
from ncclcheck.model.snapshot import Snapshot


class Place(Struct, frozen=True):
    """Which node it is: the address that NCCL uses there, "" where that is not known, and the node rank."""

    address: str
    node_rank: int

    @property
    def shown_address(self) -> str:
        """Return the address for a sentence."""
        return self.address or "address not known"


@once_per_subject
def places(snapshot: Snapshot) -> dict[str, Place]:
    """Return the place of each node whose host name another one has too, by its name in the report."""
    shared = shared_names((node.host, node.node_rank) for node in snapshot.nodes)
    addresses = {choice.host: choice.address for choice in chosen(snapshot)} if shared else {}
    return {
        node.host: Place(addresses.get(node.host, ""), node.node_rank)
        for node in snapshot.nodes
        if node.host in shared
    }


def host_text(snapshot: Snapshot, host: str) -> str:
    """Return the host for a sentence, with its address and node rank where its name does not tell which node it is."""
    place = places(snapshot).get(host)
    return host if place is None else f"{host} ({place.shown_address}, node rank {place.node_rank})"
