"""NC506 plugin-missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.hardware import NetPlugin
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.plugins import wanted_files
from ncclcheck.nccl.prediction import effective_environment, known_version
from ncclcheck.nccl.versions import NEWEST, PLUGIN_APIS, at, parse

_VARIABLE = "NCCL_NET_PLUGIN"
_BUILT_IN = frozenset({"", "ib", "socket"})  # the networks that need no plug-in; NCCL ignores the case
_NEEDS = re.compile(r"^(?P<library>[^:\s]+): cannot open shared object file")
_FIX = Fix(
    f"install the plug-in with what it needs on every node and put its folder into LD_LIBRARY_PATH there, or unset "
    f"{_VARIABLE} to use NCCL's own networks",
    (
        "echo $LD_LIBRARY_PATH",
        "find /opt /usr $(printenv LD_LIBRARY_PATH | tr : ' ') -name 'libnccl-net*.so' -exec ldd {} +",
    ),
)


class _Tried(Struct, frozen=True):
    """A plug-in on one node. `problem` is empty where it loads; `is_named`: a setting names it."""

    host: str
    name: str
    is_named: bool
    problem: str
    observed: str
    demanded_by: str  # the NCCL_NET that no built-in network answers to; empty: none


@check(
    "NC506",
    "plugin-missing",
    "The network plug-in that NCCL is told to use can be loaded on every node",
    needs=("nccl", "environment"),
    image=True,
)
def plugin_missing(snapshot: Snapshot) -> Iterator[Answer]:
    """The plug-in of NCCL_NET_PLUGIN, or libnccl-net.so, exists, loads, and has an API that this NCCL supports.

    ## Why it matters
    NCCL reports no error when a plug-in cannot be loaded: it falls back to InfiniBand or sockets, which is ten times
    slower if the plug-in drives the fast network (AWS EFA, TCPX). Where only some nodes have it, the ranks choose
    different networks, and the job fails at its start or hangs.

    ## How to fix
    Install the plug-in and the library that the evidence names on all nodes, with their folders in LD_LIBRARY_PATH of
    the job. A plug-in with too old or too new an API needs the release for this NCCL.

    ## Source
    The file was loaded as NCCL does it (dlopen, RTLD_NOW), under the job's environment; the names and API versions are
    those of NCCL src/net.cc and, from 2.26, src/plugin/plugin_open.cc and src/plugin/net.cc.
    """
    tried: list[_Tried] = []
    for node, choice in snapshot.known("nccl"):
        environment = effective_environment(node.facts)
        if isinstance(environment, Missing):
            section = "environment" if isinstance(node.facts.environment, Missing) else ""
            yield NotKnown(f"{_VARIABLE}: {environment}", (node.host,), section)
        elif isinstance(choice.plugins, Missing):
            if environment.get(_VARIABLE) or choice.plugins.missing != "absent":
                yield NotKnown(f"which plug-ins can be loaded: {choice.plugins}", (node.host,))
        else:
            tried += _tried(node.host, node.facts, environment, choice.plugins)
    for name in dict.fromkeys(attempt.name for attempt in tried):
        yield from _findings([attempt for attempt in tried if attempt.name == name])
    if not tried:
        yield NotApplicable("NCCL does not try a network plug-in on any node")
    yield from not_reported(snapshot)


def _tried(
    host: str, facts: NodeFacts, environment: dict[str, str], plugins: Sequence[NetPlugin]
) -> Iterator[_Tried]:
    version = known_version(facts)
    network = environment.get("NCCL_NET", "")
    demanded_by = "" if network.lower() in _BUILT_IN else network
    value = environment.get(_VARIABLE, "")
    if value.lower() == "none":  # before 2.28 a file name like any other, and meant all the same
        return
    for names in wanted_files(environment, version or NEWEST):
        files = [plugin for plugin in plugins if plugin.file in names]
        if files:
            observed, problem = _state(files, version)
            yield _Tried(host, names[0], bool(value), problem, observed, demanded_by)


def _state(files: Sequence[NetPlugin], version: str | None) -> tuple[str, str]:
    """The result of loading the files of one plug-in, and what is wrong with it (nothing: it is used)."""
    for file in files:
        if not isinstance(file.path, Missing):
            found = ", ".join(f"v{number}" for number in file.apis) or "no ncclNetPlugin symbol"
            observed = f"{file.path}: {found}"
            accepted = at(PLUGIN_APIS, parse(version)) if version else range(1000)
            if any(number in accepted for number in file.apis):
                return observed, ""
            if not file.apis:
                return observed, "is not a network plug-in: it has no symbol ncclNetPlugin_vN"
            takes = f"NCCL {version} takes v{accepted[0]} to v{accepted[-1]}"
            return observed, f"has an API that this NCCL does not support (it has {found}; {takes})"
    words = "; ".join(str(file.path) for file in files)
    broken = [file for file in files if isinstance(file.path, Missing) and file.path.missing != "absent"]
    if not broken:
        return words, f"does not exist ({' and '.join(file.file for file in files)} not found by the loader)"
    detail = broken[0].path.detail if isinstance(broken[0].path, Missing) else ""
    if match := _NEEDS.match(detail):
        return words, f"cannot be loaded: {match['library']}, which it needs, is missing"
    return words, f"cannot be loaded: {detail}"


def _findings(tried: Sequence[_Tried]) -> Iterator[Finding]:
    loads = [attempt.host for attempt in tried if not attempt.problem]
    groups: dict[str, list[_Tried]] = {}
    for attempt in tried:
        # The default may be absent, as long as it is absent everywhere.
        if attempt.problem and (
            attempt.is_named or loads or not attempt.problem.startswith("does not exist")
        ):
            groups.setdefault(attempt.problem, []).append(attempt)
    for problem, group in groups.items():
        yield _finding(problem, group, loads)


def _finding(problem: str, attempts: Sequence[_Tried], loads: Sequence[str]) -> Finding:
    hosts = tuple(attempt.host for attempt in attempts)
    first = attempts[0]
    consequence = "NCCL silently uses its built-in networks instead"
    if loads:
        consequence = f"it is used on {named(loads)}, so the ranks choose different networks"
    elif first.demanded_by:
        consequence = f"NCCL_NET={first.demanded_by} then fails the job at its start"
    subject = f"{_VARIABLE}={first.name}" if first.is_named else first.name
    return Finding(
        "error" if loads or first.demanded_by else "warning",
        f"the network plug-in {first.name} {problem} on {named(hosts)}: {consequence}",
        hosts,
        tuple(
            Evidence(
                tuple(attempt.host for attempt in attempts if attempt.observed == observed),
                subject,
                observed,
                "a plug-in that NCCL can load",
                "the loader, asked under the job's environment",
            )
            for observed in dict.fromkeys(attempt.observed for attempt in attempts)
        ),
        (_FIX,),
    )
