"""NC710 path-not-shared."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.host._paths import checked_paths, none_given
from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.majority import compare
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import SharedView, Snapshot


@check(
    "NC710",
    "path-not-shared",
    "All nodes see what any node writes to a shared folder",
    needs=("paths",),
    nodes=2,
    joined=True,
)
def path_not_shared(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node can write to each `--shared-dir`, and sees the files of every other node there.

    ## Why it matters
    A folder of the same name on a local disk looks shared until the job starts again: then the other nodes have no
    checkpoint. `file://` rendezvous and caches that one rank fills for all fail in the same way, as a hang.

    ## How to fix
    Mount the same filesystem on all nodes (`findmnt -T PATH` shows what is there now), and give the job's user write
    permission. If a file is seen late, the client caches names: mount NFS with a smaller `actimeo`.

    ## Source
    Proven: each node writes one file of a few bytes, named `.ncclcheck-RUN-NUMBER`, and looks for those of all others
    for up to 3 s after all were written; then each removes its own. Nothing else is read, written or removed.
    """
    found = checked_paths(snapshot, "shared")
    views = snapshot.shared
    if isinstance(views, Missing):
        if found:
            yield NotKnown(f"what the nodes see in {', '.join(folder.path for folder in found)}: {views}")
    else:
        for path in dict.fromkeys(view.path for view in views):
            yield from _judged(path, tuple(view for view in views if view.path == path))
        tried = {
            (view.host, number)
            for number, path in enumerate(dict.fromkeys(v.path for v in views))
            for view in views
            if view.path == path
        }
        for number, folder in enumerate(found):
            hosts = tuple(place.host for place in folder.places if (place.host, number) not in tried)
            if hosts:
                yield NotKnown(f"{folder.path} was not tried", hosts)
    yield from none_given(snapshot, found, "--shared-dir")
    yield from not_reported(snapshot)


def _judged(path: str, views: tuple[SharedView, ...]) -> Iterator[Answer]:
    wrote = {view.host for view in views if view.wrote is None}
    failed: dict[tuple[str, str], list[str]] = {}
    for view in views:
        if view.wrote is not None and view.wrote == view.saw and view.wrote.missing in ("timeout", "error"):
            yield NotKnown(f"{path}: {view.wrote}", (view.host,))
        elif view.wrote is not None:
            failed.setdefault((view.wrote.missing, view.wrote.detail), []).append(view.host)
        elif isinstance(view.saw, Missing):
            yield NotKnown(f"what is in {path}: {view.saw}", (view.host,))
        if view.left:
            yield _left(view)
    for (why, detail), names in failed.items():
        yield _not_writable(path, tuple(names), f"{why}: {detail}")
    seen = {
        view.host: frozenset(view.saw)
        for view in views
        if view.host in wrote and not isinstance(view.saw, Missing)
    }
    if any(not wrote <= saw for saw in seen.values()):
        yield _apart(path, seen, wrote)


def _apart(path: str, seen: dict[str, frozenset[str]], wrote: set[str]) -> Finding:
    """Groups of nodes that see each other's files; where one way works and the other does not, they are apart."""
    mutual = {
        host: frozenset(writer for writer in saw & wrote if writer == host or host in seen.get(writer, saw))
        for host, saw in seen.items()
    }
    groups = compare((host, tuple(sorted(together))) for host, together in mutual.items())
    odd = tuple(host for host in groups.odd_hosts) or tuple(mutual)
    parts = ", ".join(
        f"{named(group.hosts)} {verb(group.hosts, 'sees', 'see')} {_seen_text(group.value, group.hosts)}"
        for group in groups.groups
    )
    return Finding(
        "error",
        f"--shared-dir {path} is not shared: {parts}{' (no majority)' if groups.tie else ''}: checkpoints "
        "and files that one node writes are not there for the others",
        odd,
        tuple(
            Evidence(
                (host,),
                f"test files seen in {path}",
                ", ".join(sorted(saw)) or "none",
                ", ".join(sorted(wrote)),
                "written and looked for",
            )
            for host, saw in seen.items()
        ),
        (Fix("mount the same filesystem there on all nodes", (f"findmnt -T {path}",)),),
    )


def _seen_text(seen: tuple[str, ...], hosts: tuple[str, ...]) -> str:
    if set(seen) <= set(hosts):
        return "only its own file" if len(hosts) == 1 else "only each other's files"
    return f"those of {named(seen)}"


def _not_writable(path: str, hosts: tuple[str, ...], why: str) -> Finding:
    return Finding(
        "error",
        f"--shared-dir {path} cannot be written to by {named(hosts)} ({why}): checkpoints fail there",
        hosts,
        (Evidence(hosts, path, why, "a small file can be made", "open(2), write(2)"),),
        (
            Fix(
                "mount it for writing, and give the job's user access", (f"findmnt -T {path}; ls -ld {path}",)
            ),
        ),
    )


def _left(view: SharedView) -> Finding:
    return Finding(
        "info",
        f"{view.host} could not remove its test file in {view.path} ({view.left}): a file "
        ".ncclcheck-* of a few bytes stays",
        (view.host,),
        (Evidence((view.host,), view.path, view.left, "the test file is removed", "unlink(2)"),),
        (
            Fix(
                "remove it",
                (f"rm {view.path}/.ncclcheck-*",),
                risk="another run may be using its own right now",
            ),
        ),
    )
