"""Names of nodes that may stand in a command to paste, or in a list that another program reads.

A node says itself what it is called. A name such as `$(reboot)`, `--all`, `node[001-999]` or `ALL` is no name of a
host, and to a shell, to kubectl and to Slurm it would mean something else than this one node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_RESERVED = frozenset({"all"})  # slurm.conf(5): NodeName=ALL is every node, in any case of its letters


def is_host_word(name: str) -> bool:
    """Return whether the text is a host's name or address, which no shell or program takes for anything else."""
    return (_NAME.fullmatch(name) is not None and name.lower() not in _RESERVED) or _is_ipv6(name)


def host_words(names: Iterable[str]) -> list[str]:
    """Return those that are a host's name or address."""
    return [name for name in names if is_host_word(name)]


def _is_ipv6(name: str) -> bool:
    try:
        return IPv6Address(name).scope_id is None
    except ValueError:
        return False
