"""Reading numbers and node lists that launchers leave in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from ncclcheck.model.errors import UsageError

LAST_PORT = 65535


def number(environ: Mapping[str, str], *names: str) -> int | None:
    """The first of `names` that is set, as a count or rank. Raises UsageError when it is no whole number >= 0."""
    for name in names:
        text = environ.get(name, "").strip()
        if not text:
            continue
        if not text.isascii() or not text.isdigit():
            raise UsageError(
                f"{name}={text!r} in the environment is no rank or count: expected a whole number"
            )
        return int(text)
    return None


def port(environ: Mapping[str, str], default: int) -> int:
    """MASTER_PORT, or `default`. Raises UsageError outside 1..65535."""
    value = number(environ, "MASTER_PORT")
    if value is None:
        return default
    if not 1 <= value <= LAST_PORT:
        raise UsageError(f"MASTER_PORT={value} in the environment is no TCP port: expected 1..65535")
    return value


def node_names(text: str) -> tuple[str, ...]:
    """`node[1-3],login` expanded, in the order of the list; empty when it cannot be read."""
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP)) if text else ()
    except NodeSetException:
        return ()


def tasks_on_node(text: str, node: int) -> int | None:
    """Tasks of node number `node` in Slurm's `2(x3),1` notation (srun manual, SLURM_TASKS_PER_NODE)."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            return None
        counts += [int(match[1])] * min(int(match[2] or 1), 1 << 16)
    return counts[node] if node < len(counts) else None
