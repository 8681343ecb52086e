"""NC505 library-conflict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.hardware import NcclLibrary
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.versions import is_version, parse

_FIX = Fix(
    "keep one NCCL: remove the other folder from LD_LIBRARY_PATH and the other file from LD_PRELOAD, or the package "
    "that brought it",
    (
        "echo $LD_PRELOAD $LD_LIBRARY_PATH",
        "ldconfig -p | grep libnccl",
        "pip list | grep -i nccl",
    ),
)


# Ways that the environment opens: every program gets that library before the system's.
_BY_ENVIRONMENT = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH"})


class _Conflict(Struct, frozen=True):
    """What is wrong with the libraries of a node; equal on equal nodes."""

    severity: Severity
    loaded: NcclLibrary
    expected: str
    text: str
    others: tuple[NcclLibrary, ...]


@check(
    "NC505",
    "library-conflict",
    "There is one NCCL, and it is the one torch was built for",
    needs=("nccl", "software"),
)
def library_conflict(snapshot: Snapshot) -> Iterator[Answer]:
    """The NCCL library that torch loads is of the version torch was built for, and no other version is in reach.

    ## Why it matters
    LD_PRELOAD and LD_LIBRARY_PATH of a module or an image put another NCCL before torch's, or beside it. An older one
    lacks what torch calls: the job ends with `undefined symbol` or an internal error. One that is merely there is
    taken as soon as the environment changes, or by another program of the job, and ranks of different versions do not
    understand each other. An older one is an error, one that LD_LIBRARY_PATH or LD_PRELOAD names beside torch's a
    warning; a newer one, or the system's behind torch's (as in NVIDIA's CUDA images), is told for information.

    ## How to fix
    Keep one. torch's own package needs no LD_LIBRARY_PATH: its wheels name the folder in their DT_RPATH, which comes
    first. The evidence lists every library, its version, and the way it was found.

    ## Source
    ncclGetVersion of each library; the order of ld.so(8), read from torch's own files; the version that torch's package
    pins (nvidia-nccl-cu*).
    """
    conflicts: dict[_Conflict, list[str]] = {}
    has_one = False
    for node, choice in snapshot.known("nccl"):
        if isinstance(choice.libraries, Missing):
            yield NotKnown(f"which NCCL libraries there are: {choice.libraries}", (node.host,))
            continue
        loaded = next((one for one in choice.libraries if one.loaded_by_torch), None)
        if loaded is None:
            continue
        has_one = True
        yield from _not_known(node.host, node.facts, choice.libraries)
        conflict = _conflict(loaded, choice.libraries, _built_for(node.facts))
        if conflict is not None:
            conflicts.setdefault(conflict, []).append(node.host)
    for conflict, hosts in conflicts.items():
        yield _finding(conflict, hosts)
    if not has_one:
        yield NotApplicable("torch loads an NCCL library on no node")
    yield from not_reported(snapshot)


def _built_for(facts: NodeFacts) -> Fact[str]:
    return facts.software if isinstance(facts.software, Missing) else facts.software.torch_nccl


def _not_known(host: str, facts: NodeFacts, libraries: Sequence[NcclLibrary]) -> Iterator[NotKnown]:
    built_for = _built_for(facts)
    if isinstance(built_for, Missing):
        yield NotKnown(f"the NCCL torch was built for: {built_for}", (host,))
    for one in libraries:
        is_told = one.loaded_by_torch and isinstance(one.version, Missing) and one.version.missing == "error"
        if isinstance(one.version, Missing) and not is_told:
            yield NotKnown(f"the version of {one.path} ({one.origin}): {one.version}", (host,))


def _conflict(
    loaded: NcclLibrary, libraries: Sequence[NcclLibrary], built_for: Fact[str]
) -> _Conflict | None:
    if isinstance(loaded.version, Missing):
        if loaded.version.missing != "error":
            return None
        text = f"the NCCL that torch loads ({loaded.origin}: {loaded.path}) does not work: {loaded.version.detail}"
        return _Conflict("error", loaded, "a library that can be loaded", text, ())
    others = tuple(
        one
        for one in libraries
        if not isinstance(one.version, Missing) and parse(one.version) != parse(loaded.version)
    )
    what = f"torch loads NCCL {loaded.version} ({loaded.origin}: {loaded.path})"
    if not isinstance(built_for, Missing) and is_version(built_for):
        have, want = parse(loaded.version)[:2], parse(built_for)[:2]
        if have < want:
            text = f"{what}, which is older than the {built_for} it was built for and may lack what it calls"
            return _Conflict("error", loaded, built_for, text, others)
        if have > want:
            text = f"{what}, and was built for {built_for}; a newer one has all that torch calls"
            return _Conflict(_of_others("info", others), loaded, built_for, _with(text, others), others)
    if not others:
        return None
    return _Conflict(_of_others("info", others), loaded, str(built_for), _with(what, others), others)


def _of_others(least: Severity, others: Sequence[NcclLibrary]) -> Severity:
    """A warning where the environment puts another one first; the image's own, behind torch's, is no fault."""
    return "warning" if any(one.origin in _BY_ENVIRONMENT for one in others) else least


def _with(text: str, others: Sequence[NcclLibrary]) -> str:
    if not others:
        return text
    ways = "; ".join(f"{one.origin} gives {one.version}" for one in others)
    return f"{text}, and another version is in reach: {ways}. Which one a program gets depends on its environment"


def _finding(conflict: _Conflict, hosts: list[str]) -> Finding:
    return Finding(
        conflict.severity,
        f"on {named(hosts)} {conflict.text}",
        tuple(hosts),
        (
            _evidence(hosts, "NCCL that torch loads", conflict.loaded, conflict.expected),
            *(
                _evidence(hosts, "another NCCL in reach", one, "one version everywhere")
                for one in conflict.others
            ),
        ),
        (_FIX,),
    )


def _evidence(hosts: list[str], subject: str, library: NcclLibrary, expected: str) -> Evidence:
    return Evidence(
        tuple(hosts), f"{subject} ({library.origin})", str(library.version), expected, library.path
    )
