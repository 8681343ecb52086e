"""NC707 path-differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncclcheck.checks.host._paths import CheckedPath, checked_paths, none_given
from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Manifest, PathEntry
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.name_sketch import difference
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot

_EXAMPLES = 3
_FIX = Fix(
    "copy the data of a node that is right to the others, or let all of them mount one filesystem",
    ("rsync -an --delete --itemize-changes NODE:PATH/ PATH/   # -n: only shows what differs",),
)


@check(
    "NC707", "path-differs", "The given paths have the same content on every node", needs=("paths",), nodes=2
)
def path_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Each `--data` path has the same files on every node, and each given path has one type and filesystem.

    ## Why it matters
    Ranks that see different files read different samples, make different numbers of steps, and then wait for each
    other until the timeout; or they train on an old copy without an error.

    ## How to fix
    Copy the data again to the named node, or mount the same filesystem on all of them. `rsync -an` shows what differs.

    ## Source
    A checksum over all names, and for up to 512 files, the ones whose names have the smallest CRC-32, the sizes; of the
    first 32 of them SHA-256 over size, first and last 64 KiB. So a change inside a large folder may go unseen, and a
    folder that could not be listed within 3 s is unknown. The type of the filesystem is that of /proc/self/mountinfo.
    """
    found = checked_paths(snapshot, "data", "code", "shared", "checkpoint")
    for wanted_path in found:
        yield from _kind(wanted_path)
        yield from _filesystem(wanted_path)
    for wanted_path in checked_paths(snapshot, "data"):
        yield from _files(wanted_path)
    yield from none_given(snapshot, found, "--data, --code, --shared-dir or --checkpoint")
    yield from not_reported(snapshot)


def _compared(wanted_path: CheckedPath, field: str) -> HostComparison[str]:
    values = ((place.host, getattr(place.fact, field)) for place in wanted_path.places)
    return compare((host, value) for host, value in values if not isinstance(value, Missing))


def _kind(wanted_path: CheckedPath) -> Iterator[Answer]:
    kinds = _compared(wanted_path, "kind")
    if kinds.differs:
        yield Finding(
            "error",
            f"{wanted_path.words} has different types: {sentence(kinds)}",
            kinds.odd_hosts,
            evidence(kinds, wanted_path.path, "stat"),
            (_FIX,),
        )
    for place in wanted_path.places:
        if isinstance(place.fact.kind, Missing):
            yield NotKnown(f"{wanted_path.path}: {place.fact.kind}", (place.host,))


def _filesystem(wanted_path: CheckedPath) -> Iterator[Answer]:
    types = _compared(wanted_path, "filesystem")
    if types.differs:
        yield Finding(
            "warning",
            f"{wanted_path.words} is on different kinds of filesystem: {sentence(types)}: where one "
            "node has a local copy, it sees other files than the rest",
            types.odd_hosts,
            evidence(types, f"filesystem of {wanted_path.path}", "/proc/self/mountinfo"),
            (Fix("mount the same filesystem on all nodes", (f"findmnt -T {wanted_path.path}",)),),
        )
    for place in wanted_path.places:
        if isinstance(place.fact.filesystem, Missing) and not isinstance(place.fact.kind, Missing):
            yield NotKnown(f"the filesystem of {wanted_path.path}: {place.fact.filesystem}", (place.host,))


def _files(wanted_path: CheckedPath) -> Iterator[Answer]:
    manifests: dict[str, Manifest] = {}
    for place in wanted_path.places:
        if isinstance(place.fact.kind, Missing):
            continue  # that it is not known is said once, by what compares the kinds
        if isinstance(place.fact.manifest, Missing):
            yield NotKnown(f"what is in {wanted_path.path}: {place.fact.manifest}", (place.host,))
        else:
            manifests[place.host] = place.fact.manifest
            if place.fact.manifest.unlisted:
                count = place.fact.manifest.unlisted
                yield NotKnown(
                    f"{wanted_path.path}: folders below it that could not be listed: {count}", (place.host,)
                )
            if not place.fact.manifest.complete:
                count = place.fact.manifest.files
                yield NotKnown(
                    f"{wanted_path.path}: only {count} files were listed in the time for it", (place.host,)
                )
    whole = {host: manifest for host, manifest in manifests.items() if manifest.complete}
    listings = compare((host, (manifest.files, manifest.names_checksum)) for host, manifest in whole.items())
    if listings.differs:
        yield _other_names(wanted_path, listings, whole)
    yield from _other_files(wanted_path, manifests, "size", lambda entry: entry.size_bytes)
    yield from _other_files(wanted_path, manifests, "content", lambda entry: entry.sha256)


def _other_names(
    wanted_path: CheckedPath, listings: HostComparison[tuple[int, int]], manifests: dict[str, Manifest]
) -> Finding:
    usual = manifests[(listings.usual or listings.groups[0]).hosts[0]]
    pieces = []
    for group in listings.odd:
        less, more = _difference(usual, manifests[group.hosts[0]])
        words = [f"without {_some(less)}"] * bool(less) + [f"with {_some(more)}"] * bool(more)
        pieces.append(
            f"{group.value[0]} files on {named(group.hosts)}{' (' + ', '.join(words) + ')' if words else ''}"
        )
    if listings.usual is not None:
        pieces.append(f"{listings.usual.value[0]} on {named(listings.usual.hosts)}")
    tie = " (no majority)" if listings.tie else ""
    return Finding(
        "error",
        f"{wanted_path.words} has different files: {', '.join(pieces)}{tie}: ranks read different data, or "
        "wait for each other",
        listings.odd_hosts,
        evidence(
            listings,
            f"files below {wanted_path.path}",
            "names of all files",
            lambda value: f"{value[0]} files, {value[1]:x}",
        ),
        (_FIX,),
    )


def _difference(usual: Manifest, manifest: Manifest) -> tuple[list[str], list[str]]:
    """Names that are certainly only in one of the two: of all names where that is known, else of the samples."""
    less, more, is_all = difference(usual.sketch, manifest.sketch)
    if is_all:
        return list(less), list(more)
    reach = min(usual.largest_hash, manifest.largest_hash)
    left = {entry.name for entry in usual.sample if entry.name_hash <= reach}
    right = {entry.name for entry in manifest.sample if entry.name_hash <= reach}
    return sorted({*less, *(left - right)}), sorted({*more, *(right - left)})


def _some(names: list[str]) -> str:
    return listed((name or "it" for name in names), _EXAMPLES)


def _other_files(
    wanted_path: CheckedPath,
    manifests: dict[str, Manifest],
    what: str,
    value_of: Callable[[PathEntry], Fact[object]],
) -> Iterator[Finding]:
    """The files of the sample that are not the same everywhere, the nodes that are in the minority together."""
    values: dict[str, list[tuple[str, str]]] = {}
    for host, manifest in manifests.items():
        for entry in manifest.sample:
            value = value_of(entry)
            if not isinstance(value, Missing):
                values.setdefault(entry.name, []).append((host, str(value)))
    differing: dict[tuple[str, ...], list[tuple[str, HostComparison[str]]]] = {}
    for name, values_of_nodes in values.items():
        comparison = compare(values_of_nodes)
        if comparison.differs:
            differing.setdefault(comparison.odd_hosts, []).append((name, comparison))
    severity: Severity = "error"
    for hosts, files in differing.items():
        names = sorted(name for name, _ in files)
        tie = " (no majority)" if files[0][1].tie else ""
        yield Finding(
            severity,
            f"{wanted_path.words}: {_some(names)} {verb(names, 'has', 'have')} a different {what} on "
            f"{named(hosts)}{tie}"
            ": ranks read different data",
            hosts,
            tuple(
                Evidence(
                    group.hosts,
                    f"{what} of {name or wanted_path.path}",
                    group.value[:16],
                    "the same on every node",
                    "lstat, read",
                )
                for name, comparison in files[:_EXAMPLES]
                for group in comparison.groups
            ),
            (_FIX,),
        )
