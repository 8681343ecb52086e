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


# It was loaded, or could not be: no NCCL, or none that works.
_BROKEN = ("error", "unsupported")
# Ways that the environment opens: every program gets that library before the system's.
_BY_ENVIRONMENT = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH"})


class _Conflict(Struct, frozen=True):
    """What is wrong with the libraries of a node; equal on equal nodes."""

    severity: Severity
    loaded: NcclLibrary
    expected: str
    text: str
    others: tuple[NcclLibrary, ...]


class _Broken(Struct, frozen=True):
    """A library that cannot be used; equal on equal nodes."""

    severity: Severity
    library: NcclLibrary


@check(
    "NC505",
    "library-conflict",
    "Only the NCCL that torch was built for can be loaded",
    needs=("nccl", "software"),
    image=True,
)
def library_conflict(snapshot: Snapshot) -> Iterator[Answer]:
    """torch loads the NCCL version it was built for, and no other version is in the search path.

    ## Why it matters
    LD_PRELOAD and LD_LIBRARY_PATH of a module or an image can make programs load another NCCL than torch's. An older
    one lacks functions that torch calls: the job ends with `undefined symbol` or an internal error. Another version
    in the search path is loaded as soon as the environment changes, or by another program of the job, and ranks of
    different versions cannot communicate. A damaged file, or one that is not NCCL, ends the program that loads it.

    A library that does not work is an error, or a warning if one that works is found first. An older version is an
    error. Another one in LD_LIBRARY_PATH or LD_PRELOAD is a warning. A newer version, or the system's behind torch's
    (as in NVIDIA's CUDA images), is information.

    ## How to fix
    Keep one NCCL. torch's own package needs no LD_LIBRARY_PATH: its wheels name the folder in their DT_RPATH, which
    comes first. The evidence lists every library, its version, and how it was found.

    ## Source
    ncclGetVersion of each library; the order of ld.so(8), read from torch's own files; the version that torch's package
    pins (nvidia-nccl-cu*).
    """
    conflicts: dict[_Conflict, list[str]] = {}
    broken: dict[_Broken, list[str]] = {}
    has_one = False
    for node, choice in snapshot.known("nccl"):
        if isinstance(choice.libraries, Missing):
            yield NotKnown(f"which NCCL libraries there are: {choice.libraries}", (node.host,))
            continue
        loaded = next((library for library in choice.libraries if library.loaded_by_torch), None)
        for library in _broken(choice.libraries, loaded):
            broken.setdefault(library, []).append(node.host)
        has_one = has_one or loaded is not None or bool(broken)
        if loaded is None:
            continue
        yield from _not_known(node.host, node.facts, choice.libraries)
        conflict = _conflict(loaded, choice.libraries, _built_for(node.facts))
        if conflict is not None:
            conflicts.setdefault(conflict, []).append(node.host)
    for conflict, hosts in conflicts.items():
        yield _finding(conflict, hosts)
    for library, hosts in broken.items():
        yield _of_broken(library, hosts)
    if not has_one:
        yield NotApplicable("torch does not load an NCCL library on any node")
    yield from not_reported(snapshot)


def _built_for(facts: NodeFacts) -> Fact[str]:
    return facts.software if isinstance(facts.software, Missing) else facts.software.torch_nccl


def _not_known(host: str, facts: NodeFacts, libraries: Sequence[NcclLibrary]) -> Iterator[NotKnown]:
    built_for = _built_for(facts)
    if isinstance(built_for, Missing):
        section = "software" if isinstance(facts.software, Missing) else ""
        yield NotKnown(f"the NCCL torch was built for: {built_for}", (host,), section)
    for library in libraries:
        if isinstance(library.version, Missing) and not _why_broken(library):
            yield NotKnown(f"the version of {library.path} ({library.origin}): {library.version}", (host,))


def _why_broken(library: NcclLibrary) -> str:
    """The error of loading it, where that failed; "" where it did not, or where that is not known."""
    if not isinstance(library.version, Missing) or library.version.missing not in _BROKEN:
        return ""
    return library.version.detail.removeprefix(f"{library.path}: ")


def _broken(libraries: Sequence[NcclLibrary], loaded: NcclLibrary | None) -> Iterator[_Broken]:
    """Those beside torch's own that do not work: an error where there is none in front of them that does."""
    works = loaded is not None and not isinstance(loaded.version, Missing)
    for library in libraries:
        if library is not loaded and _why_broken(library):
            yield _Broken("warning" if works else "error", library)


def _of_broken(broken: _Broken, hosts: list[str]) -> Finding:
    library = broken.library
    return Finding(
        broken.severity,
        f"on {named(hosts)} the NCCL library {library.path} ({library.origin}) does not work, and a "
        f"program that loads it ends: {_why_broken(library)}",
        tuple(hosts),
        (_evidence(hosts, "another NCCL in the search path", library, "a library that can be loaded"),),
        (_FIX,),
    )


def _conflict(
    loaded: NcclLibrary, libraries: Sequence[NcclLibrary], built_for: Fact[str]
) -> _Conflict | None:
    if isinstance(loaded.version, Missing):
        why = _why_broken(loaded)
        if not why:
            return None
        text = f"the NCCL that torch loads ({loaded.origin}: {loaded.path}) does not work: {why}"
        return _Conflict("error", loaded, "a library that can be loaded", text, ())
    others = tuple(
        library
        for library in libraries
        if not isinstance(library.version, Missing) and parse(library.version) != parse(loaded.version)
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
    return "warning" if any(library.origin in _BY_ENVIRONMENT for library in others) else least


def _with(text: str, others: Sequence[NcclLibrary]) -> str:
    if not others:
        return text
    others_text = "; ".join(f"{library.origin} gives {library.version}" for library in others)
    return (
        f"{text}, and another version is in the search path: {others_text}. The environment decides "
        "which one a program loads"
    )


def _finding(conflict: _Conflict, hosts: list[str]) -> Finding:
    return Finding(
        conflict.severity,
        f"on {named(hosts)} {conflict.text}",
        tuple(hosts),
        (
            _evidence(hosts, "NCCL that torch loads", conflict.loaded, conflict.expected),
            *(
                _evidence(hosts, "another NCCL in the search path", library, "one version everywhere")
                for library in conflict.others
            ),
        ),
        (_FIX,),
    )


def _evidence(hosts: list[str], subject: str, library: NcclLibrary, expected: str) -> Evidence:
    return Evidence(
        tuple(hosts), f"{subject} ({library.origin})", str(library.version), expected, library.path
    )
