"""Reading numbers and node lists that launchers leave in the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ncclcheck.model.errors import UsageError

DEFAULT_PORT = 29500  # torch/distributed/run.py: the default of --master-port
LAST_PORT = 65535
MOST_DIGITS = 7  # ten million ranks are more than anybody has
MOST_NAMES = 1 << 16  # a list of more is a slip, and naming them all would take minutes
_MOST_LETTERS = 253  # of a host name (RFC 1035): ClusterShell takes time in the square of a longer one
ENTRY = re.compile(
    r"(?:[^,\s\[\]]|\[[^\[\]]*\])+"
)  # of a list; no "[" within brackets, so that it takes linear time
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?", re.ASCII)


def number(environ: Mapping[str, str], *names: str) -> int | None:
    """Return the first of `names` that is set, as a count or rank.

    Raises UsageError when it is no whole number >= 0.
    """
    for name in names:
        text = environ.get(name, "").strip()
        if not text:
            continue
        if not text.isascii() or not text.isdigit() or len(text) > MOST_DIGITS:
            raise UsageError(
                f"{name}={text[:40]!r} in the environment is no rank, count or port: expected a whole number below 10^7"
            )
        return int(text)
    return None


def count(environ: Mapping[str, str], *names: str) -> int:
    """Return the first of `names` that is set, as a number of processes or nodes; 1 where none is.

    Raises UsageError for 0.
    """
    value = number(environ, *names)
    if value == 0:
        name = next(name for name in names if environ.get(name, "").strip())
        raise UsageError(f"{name}=0 in the environment is impossible: this process alone makes it 1")
    return value or 1


def port(environ: Mapping[str, str], default: int = DEFAULT_PORT) -> int:
    """Return MASTER_PORT, or `default`. Raises UsageError outside 1..65535."""
    value = number(environ, "MASTER_PORT")
    if value is None:
        return default
    if not 1 <= value <= LAST_PORT:
        raise UsageError(f"MASTER_PORT={value} in the environment is no TCP port: expected 1..65535")
    return value


def node_names(text: str) -> tuple[str, ...]:
    """Return `node[1-3],login` expanded, in the order of the list; empty for what is no list, or over MOST_NAMES."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if names_in(text) > MOST_NAMES or any(
        len(part) > _MOST_LETTERS for part in _BRACKETS.sub("", text).split(",")
    ):
        return ()
    try:
        # Raises for what is no list. Its own order is of no use: a NodeSet is sorted.
        NodeSet(text, resolver=RESOLVER_NOGROUP)
        names = [name for entry in _entries(text) for name in NodeSet(entry, resolver=RESOLVER_NOGROUP)]
    except (NodeSetException, ValueError):  # ValueError: a number of more than 4,300 digits
        return ()
    return tuple(dict.fromkeys(names))


def names_in(text: str) -> int:
    """Return how many names there are at most in such a list, without expanding it."""
    total = 0
    for entry in ENTRY.findall(text):
        of_entry = 1
        for ranges in _BRACKETS.findall(entry):
            of_entry = min(of_entry * sum(_length(word) for word in ranges.split(",")), MOST_NAMES + 1)
        total += of_entry
    return total


def _length(text: str) -> int:
    match = _RANGE.fullmatch(text.strip())
    if match is None or match[2] is None:
        return 1
    if max(map(len, match.groups(""))) > MOST_DIGITS:
        return MOST_NAMES + 1
    return max(int(match[2]) - int(match[1]), 0) // max(int(match[3] or 1), 1) + 1


def _entries(text: str) -> Iterator[str]:
    """Yield `a[3,1],b` as `a[3]`, `a[1]`, `b`."""
    for entry in ENTRY.findall(text):
        head, bracket, rest = entry.partition("[")
        ranges, _, tail = rest.partition("]")
        yield from (f"{head}[{word}]{tail}" for word in ranges.split(",")) if bracket else (entry,)


def tasks_on_node(text: str, node: int) -> int | None:
    """Return the tasks of node number `node` in Slurm's `2(x3),1` notation (srun manual, SLURM_TASKS_PER_NODE)."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            return None
        counts += [int(match[1])] * min(int(match[2] or 1), 1 << 16)
    return counts[node] if node < len(counts) else None
