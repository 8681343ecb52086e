"""How hosts are named in a sentence, and what is not known because a host did not report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.formats.host_ranges import fold_numbered
from ncclcheck.model.formats.prose import joined, listed
from ncclcheck.model.snapshot import Snapshot

_LISTED = 3  # so many names are spelled out; more are folded to node[01-08]


def named(hosts: Iterable[str]) -> str:
    """Return the hosts for a sentence: `node01`, `node01 and node02`, `node[01-08]`."""
    names = list(dict.fromkeys(hosts))
    if len(names) > _LISTED:
        return _folded(names)
    return joined(names)


def _folded(names: list[str]) -> str:
    numbered = fold_numbered(names)
    if numbered is not None:
        return numbered
    try:
        return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return listed(names, _LISTED)


def verb(subjects: Sized, singular: str, many: str) -> str:
    """Return `singular` for a single subject, else `many`: "node01 has", "node01 and node02 have"."""
    return singular if len(subjects) == 1 else many


@once_per_subject
def job_size(snapshot: Snapshot) -> int:
    """How many nodes the job has: those seen, or more where a launcher said so."""
    return snapshot.job_size


def not_reported(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield the reasons why not every node can be judged: nodes that did not report, or nodes that never joined."""
    if snapshot.silent:
        yield NotKnown("did not report", tuple(silent.host for silent in snapshot.silent))
    elif snapshot.viewpoint == "one-node" and job_size(snapshot) > 1:
        yield NotKnown(snapshot.lost_run or "this node did not meet the others")


def unread(snapshot: Snapshot, section: str) -> Iterator[NotKnown]:
    """Yield a NotKnown for each node whose `section` of the facts could not be read."""
    for node, why in snapshot.unread(section):
        yield NotKnown(f"{section}: {why}", (node.host,), section)
