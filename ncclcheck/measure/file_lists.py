"""What differs between the files of two nodes, and which nodes to ask for theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import CodeDifference, FileNames, Snapshot

_NAMED = 10
_MOST_OTHERS = 3  # contents of a path that are compared with the usual one
_MOST_PATHS = 8


def to_compare(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Return each `--code` path that differs, with a host of each content: of the most frequent one first."""
    found: dict[str, dict[str, list[str]]] = {}
    for node, code in snapshot.known("code"):
        for place in code.paths:
            if not isinstance(place.tree_sha256, Missing):
                found.setdefault(place.path, {}).setdefault(place.tree_sha256, []).append(node.host)
    differing = {
        path: tuple(hosts[0] for hosts in sorted(by_content.values(), key=len, reverse=True))
        for path, by_content in found.items()
        if len(by_content) > 1
    }
    return {path: hosts[: 1 + _MOST_OTHERS] for path, hosts in list(differing.items())[:_MOST_PATHS]}


def differences(
    hosts_by_path: Mapping[str, tuple[str, ...]], listings: Mapping[tuple[str, str], Mapping[str, str]]
) -> tuple[CodeDifference, ...]:
    """Return how each host's files differ from those of the first host; `listings` is by (host, path)."""
    return tuple(
        _difference(path, (host, listings[host, path]), (usual, listings[usual, path]))
        for path, (usual, *others) in hosts_by_path.items()
        if (usual, path) in listings
        for host in others
        if (host, path) in listings
    )


def _difference(
    path: str, listing: tuple[str, Mapping[str, str]], usual: tuple[str, Mapping[str, str]]
) -> CodeDifference:
    here, there = listing[1], usual[1]
    return CodeDifference(
        path,
        listing[0],
        usual[0],
        changed=_names(name for name in here if name in there and here[name] != there[name]),
        missing=_names(name for name in there if name not in here),
        extra=_names(name for name in here if name not in there),
    )


def _names(found: Iterable[str]) -> FileNames:
    names = sorted(found)
    return FileNames(len(names), tuple(names[:_NAMED]))
