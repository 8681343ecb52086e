"""NC503 code-differs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.software._files import difference_text, file_evidence
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Code, CodePath
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import CodeDifference, Snapshot

_NAMED_PACKAGES = 8  # so many differing packages are named in the summary
_HASH_DIGITS = 12
_ABSENT = "absent"

_Places = dict[str, CodePath]  # host -> what is there


@check("NC503", "code-differs", "All nodes run the same code", needs=("code",), nodes=2, joined=True)
def code_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Every `--code` path has the same content on every node, and the same Python packages are installed.

    ## Why it matters
    Ranks that run different code call different collectives, or the same ones with other sizes. The job hangs or,
    worse, computes wrong results. A forgotten `git pull` on one node is enough.

    ## How to fix
    Bring the named nodes to the commit of the others, or use one image or a shared filesystem.

    ## Source
    SHA-256 over names and contents of the files. Where it differs, one node of each content lists its files, and the
    first ten that differ, are missing or are extra are named. `git rev-parse HEAD` and `git status`;
    importlib.metadata.
    """
    by_path: dict[str, _Places] = {}
    codes = [(node.host, code) for node, code in snapshot.known("code")]
    for host, code in codes:
        for place in code.paths:
            by_path.setdefault(place.path, {})[host] = place
    for path, places in by_path.items():
        lacking = tuple(host for host, _ in codes if host not in places)
        if lacking:
            yield NotKnown(f"{path} was not read", lacking)
        yield from _path(path, places, snapshot.code_differences)
    yield from _packages(codes)
    yield from not_reported(snapshot)


def _path(path: str, places: _Places, differences: Sequence[CodeDifference]) -> Iterator[Answer]:
    trees: list[tuple[str, str]] = []
    for host, place in places.items():
        if not isinstance(place.tree_sha256, Missing):
            trees.append((host, place.tree_sha256[:_HASH_DIGITS]))
        elif place.tree_sha256.missing == "absent":
            trees.append((host, _ABSENT))
        else:
            yield NotKnown(f"content of {path}: {place.tree_sha256}", (host,))
    contents = compare(trees)
    if contents.differs:
        hosts = contents.odd_hosts
        pieces = evidence(contents, f"content of {path}", "SHA-256 of its files") + _git_evidence(
            path, places
        )
        listed_differences = [difference for difference in differences if difference.path == path]
        files = "".join(f"; {difference_text(difference)}" for difference in listed_differences) + _unlisted(
            contents, listed_differences
        )
        pieces = (
            *(piece for difference in listed_differences for piece in file_evidence(difference)),
            *pieces,
        )
        fix = _fix(contents, places, path)
        yield _finding("error", f"{path} differs: {sentence(contents)}{files}", hosts, pieces, fix)
        return
    if trees and trees[0][1] == _ABSENT:
        yield NotKnown(f"{path} is on no node")
    for host, place in places.items():
        for what, state in (("commit", place.git_commit), ("uncommitted changes", place.git_dirty)):
            # What has no git state is compared by its content alone.
            if isinstance(state, Missing) and state.missing != "absent":
                yield NotKnown(f"{what} of {path}: {state}", (host,))
    changes_known = not any(isinstance(place.git_dirty, Missing) for place in places.values())
    commits = compare(
        (host, _git(place) if changes_known else place.git_commit[:_HASH_DIGITS])
        for host, place in places.items()
        if not isinstance(place.git_commit, Missing)
    )
    if commits.differs:
        # Equal content is what runs; where it could not be compared the commits decide.
        severity: Severity = "warning" if len(trees) == len(places) else "error"
        known = (
            "though the files are equal" if severity == "warning" else "and not all files could be compared"
        )
        pieces = _git_evidence(path, places)
        text = f"the git state of {path} differs, {known}: {sentence(commits)}"
        yield _finding(severity, text, commits.odd_hosts, pieces, _fix(commits, places, path))


def _git(place: CodePath) -> str:
    commit = "unknown" if isinstance(place.git_commit, Missing) else place.git_commit[:_HASH_DIGITS]
    if isinstance(place.git_dirty, Missing):
        return f"{commit} (changes unknown)"
    return f"{commit} with uncommitted changes" if place.git_dirty else commit


def _git_evidence(path: str, places: _Places) -> tuple[Evidence, ...]:
    states = compare((host, _git(place)) for host, place in places.items())
    return evidence(states, f"git state of {path}", "git rev-parse HEAD, git status")


def _unlisted(contents: HostComparison[str], listed_differences: Sequence[CodeDifference]) -> str:
    """Say of whose files it is not known which differ: a list was late, or there are too many contents."""
    listed = {
        host for difference in listed_differences for host in (difference.host, difference.compared_with)
    }
    without = tuple(
        host
        for group in contents.odd
        if group.value != _ABSENT and listed.isdisjoint(group.hosts)
        for host in group.hosts
    )
    return f"; which files differ on {named(without)} was not found out in time" if without else ""


def _fix(states: HostComparison[str], places: _Places, path: str) -> Fix:
    hosts = states.odd_hosts
    text = (
        f"make {path} equal on {named(hosts)}"
        if states.tie
        else f"update {named(hosts)} to the state of the others"
    )
    quoted = shlex.quote(path)
    if any(not isinstance(places[host].git_commit, Missing) for host in hosts):
        return Fix(text, (f"git -C {quoted} status", f"git -C {quoted} pull"))
    if states.groups[0].value == _ABSENT:
        return Fix(text)
    # -n: what would change is listed, and nothing is changed
    return Fix(text, (f"rsync -rcni --delete {states.groups[0].hosts[0]}:{quoted}/ {quoted}/",))


def _finding(
    severity: Severity, text: str, hosts: tuple[str, ...], pieces: tuple[Evidence, ...], fix: Fix
) -> Finding:
    return Finding(
        severity,
        f"{text}: ranks that run different code hang or compute wrong numbers",
        hosts,
        pieces,
        (fix,),
    )


def _packages(codes: list[tuple[str, Code]]) -> Iterator[Answer]:
    hashes: list[tuple[str, str]] = []
    for host, code in codes:
        if isinstance(code.packages_sha256, Missing):
            yield NotKnown(f"installed packages: {code.packages_sha256}", (host,))
        else:
            hashes.append((host, code.packages_sha256))
    lists = compare(hashes)
    if not lists.differs:
        return
    installed = {host: code.packages for host, code in codes if not isinstance(code.packages, Missing)}
    different = _different(installed)
    shown = listed((f"{name} ({versions})" for name, versions in different.items()), _NAMED_PACKAGES)
    what = shown or "their lists could not be compared"
    yield Finding(
        "warning",
        f"installed Python packages differ on {named(lists.odd_hosts)}: {what}",
        lists.odd_hosts,
        tuple(
            Evidence(tuple(installed), f"package {name}", versions, "one version", "importlib.metadata")
            for name, versions in different.items()
        )
        or evidence(
            lists, "hash of the package list", "importlib.metadata", lambda text: text[:_HASH_DIGITS]
        ),
        (Fix("install the same packages on all nodes, best by using one image", ("pip freeze",)),),
    )


def _different(installed: dict[str, dict[str, str]]) -> dict[str, str]:
    """Package -> "1.0 on node03, 1.1 on node[01-02]", for those that differ."""
    different = {}
    for name in sorted({name for packages in installed.values() for name in packages}):
        versions = compare(
            (host, packages.get(name, "not installed")) for host, packages in installed.items()
        )
        if versions.differs:
            different[name] = sentence(versions)
    return different
