"""Nodes that call themselves the same: the report adds the node rank to their names (node#1, node#2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def shared_names(nodes: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return what nodes call themselves, by their names in the report, where several call themselves the same.

    `nodes`: the name in the report and the node rank of each.
    """
    base_names = {host: host.removesuffix(f"#{rank}") for host, rank in nodes if host.endswith(f"#{rank}")}
    counts = Counter(base_names.values())
    return {host: name for host, name in base_names.items() if counts[name] > 1}
