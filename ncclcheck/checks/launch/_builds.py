"""Nodes that run another state of ncclcheck than node 0, of the same version or not: they may not understand it."""

from __future__ import annotations

from collections.abc import Collection

from ncclcheck.checks.hosts import named
from ncclcheck.model.snapshot import Snapshot


def build_hint(snapshot: Snapshot, hosts: Collection[str]) -> str:
    """Return which of these hosts run another ncclcheck than node 0, in a sentence; nothing where none does."""
    first = next((node.host for node in snapshot.nodes if node.node_rank == 0), "")
    of_first = snapshot.builds.get(first, "")
    different = {
        host: snapshot.builds[host] for host in hosts if snapshot.builds.get(host, of_first) != of_first
    }
    if not different:
        return ""
    builds = named(dict.fromkeys(different.values()))
    return (
        f"{named(different)} runs ncclcheck {builds}, and node 0 {of_first}: install the same on every node"
    )
