"""NC706 path-missing."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.host._paths import OPTION, CheckedPath, checked_paths, none_given
from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import PathFact
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

_WORDS = {
    "absent": ("does not exist", "mount it there, or correct the path", "ls -ld {path}; findmnt -T {path}"),
    "denied": ("may not be read by this user", "give the job's user access to it", "namei -l {path}"),
    "timeout": (
        "does not answer: its filesystem hangs",
        "repair the mount; until then every process that accesses it hangs",
        "cat /proc/mounts; dmesg | tail",
    ),
}
_OTHER = ("cannot be examined", "find the error that the filesystem reports", "dmesg | tail")


@check("NC706", "path-missing", "The given paths exist on every node", needs=("paths",))
def path_missing(snapshot: Snapshot) -> Iterator[Answer]:
    """Each path of `--data`, `--code`, `--shared-dir` and `--checkpoint` exists on every node, answers and is readable.

    It is a folder or a file, `--shared-dir` a folder. A folder below `--data` that does not answer is found too.

    ## Why it matters
    One node without the mount fails the whole job, often after minutes of loading. A mount whose server is gone is
    worse: every process that accesses it hangs and cannot be killed.

    ## How to fix
    Mount the filesystem on the named nodes, correct the path, or give the user access. For a container, add the volume.

    ## Source
    stat(2) and a first entry of opendir(3) or open(2), in a process that is abandoned when it does not answer within
    4.5 s.
    """
    found = checked_paths(snapshot, "data", "code", "shared", "checkpoint")
    for wanted_path in found:
        yield from _judged(wanted_path)
    yield from none_given(snapshot, found, "--data, --code, --shared-dir or --checkpoint")
    yield from not_reported(snapshot)


def _judged(wanted_path: CheckedPath) -> Iterator[Answer]:
    broken: dict[str, list[tuple[str, Missing]]] = {}
    for place in wanted_path.places:
        failed = _failure(place.fact)
        if failed is not None:
            broken.setdefault(failed.missing, []).append((place.host, failed))
    for why, failures in broken.items():
        hosts = tuple(host for host, _ in failures)
        what, advice, command = _WORDS.get(why, _OTHER)
        elsewhere = tuple(place.host for place in wanted_path.places if _failure(place.fact) is None)
        contrast = f", while {named(elsewhere)} {verb(elsewhere, 'has', 'have')} it" if elsewhere else ""
        yield Finding(
            "error",
            f"{wanted_path.words} {what} on {named(hosts)}{contrast}: the job fails there when it needs it",
            hosts,
            tuple(
                Evidence((host,), wanted_path.path, str(failed), "there, and readable", "stat, open")
                for host, failed in failures
            ),
            (Fix(advice, (command.format(path=wanted_path.path),)),),
        )
    for place in wanted_path.places:
        if _failure(place.fact) is None and isinstance(place.fact.listed, Missing):
            yield NotKnown(f"whether {wanted_path.path} may be read: {place.fact.listed}", (place.host,))
    yield from _wrong_kind(wanted_path)
    yield from _stuck_below(wanted_path)


def _wrong_kind(wanted_path: CheckedPath) -> Iterator[Answer]:
    kinds: dict[str, list[str]] = {}
    for place in wanted_path.places:
        kind = place.fact.kind
        if kind == "other" or (kind == "file" and place.fact.purpose == "shared"):
            kinds.setdefault(kind, []).append(place.host)
    for kind, names in kinds.items():
        hosts = tuple(names)
        what = "a file" if kind == "file" else "neither a folder nor a file (a pipe, socket or device)"
        wanted_kind = "a folder" if wanted_path.option == OPTION["shared"] else "a folder or a file"
        yield Finding(
            "error",
            f"{wanted_path.words} is {what} on {named(hosts)}, where {wanted_kind} is needed",
            hosts,
            (Evidence(hosts, wanted_path.path, what, wanted_kind, "stat"),),
            (Fix("correct the path", (f"stat {wanted_path.path}",)),),
        )


def _stuck_below(wanted_path: CheckedPath) -> Iterator[Answer]:
    """A mount below the folder may be dead although the folder itself answers."""
    hosts_by_detail: dict[str, list[str]] = {}
    for place in wanted_path.places:
        manifest = place.fact.manifest
        if _failure(place.fact) is None and isinstance(manifest, Missing) and manifest.missing == "timeout":
            hosts_by_detail.setdefault(manifest.detail, []).append(place.host)
    for detail, names in hosts_by_detail.items():
        hosts = tuple(names)
        _, advice, command = _WORDS["timeout"]
        yield Finding(
            "error",
            f"{wanted_path.words} cannot be listed to its end on {named(hosts)}: {detail}: a process that "
            "reads it hangs there",
            hosts,
            (Evidence(hosts, f"below {wanted_path.path}", detail, "an answer", "scandir, lstat, read"),),
            (Fix(advice, (command.format(path=wanted_path.path),)),),
        )


def _failure(fact: PathFact) -> Missing | None:
    """Why the path is of no use; None where it is, or where only part of it is not known."""
    if isinstance(fact.kind, Missing):
        return fact.kind
    if fact.listed is False:
        return Missing("denied", "it is there, and may not be listed or opened")
    is_stuck = isinstance(fact.listed, Missing) and fact.listed.missing in ("timeout", "error")
    return fact.listed if is_stuck and isinstance(fact.listed, Missing) else None
