"""How the demands of a policy are judged: which hold for a node, what was seen, and what could not be checked."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.policy.expected import (
    Expectation,
    Expected,
    Number,
    Presence,
    Profile,
    Subnet,
    Text,
    VersionRange,
    Wanted,
)
from ncclcheck.model.snapshot import Node, Snapshot

NOT_SET = "not set"
_NUMBERS = re.compile(r"\d+(\.\d+)*", re.ASCII)


class Nothing(Struct, frozen=True):
    """What was looked for and is not there: it meets no demand."""

    why: str


Value: TypeAlias = str | float | Nothing | None


class Seen(Struct, frozen=True):
    """One value of a node that a demand is compared with. `what` names it in a sentence, `source` is where it was read.

    The value is a text, a number in the unit of the demand (None: without limit), Nothing, or Missing.
    """

    what: str
    value: Value | Missing
    source: str


# The values of a node for a demand; it may be several, like one per GPU. None of them: there is nothing to compare.
Reader: TypeAlias = Callable[[Node, Expectation], Iterable[Seen]]


class Unmet(Struct, frozen=True):
    """An unmet demand, in the words of its finding."""

    what: str
    observed: str
    wanted: str
    read: str
    key: str
    policy: str


def unexpected(snapshot: Snapshot, readers: Mapping[str, Reader], fix: str) -> Iterator[Answer]:
    """Yield one finding per unmet demand, with all its hosts, and NotKnown for every demand that could not be checked.

    `readers` are those of this check, by key or by the section of the key.
    """
    unmet: dict[Unmet, list[str]] = {}
    judged = [
        expectation
        for expectation in snapshot.expected.expectations
        if reader_of(readers, expectation.key) is not None
    ]
    if not judged:
        yield NotApplicable("no policy (--expect) requires anything of this kind")
        return
    for node in snapshot.nodes:
        demands, unknown = demands_on(node, snapshot.expected)
        for demand in demands:
            reader = reader_of(readers, demand.key)
            for seen in () if reader is None else reader(node, demand):
                answer = _compared(seen, demand)
                if isinstance(answer, Missing):
                    yield NotKnown(f"{demand.key} ({demand.source}): {seen.what}: {answer}", (node.host,))
                elif answer is not None:
                    unmet.setdefault(answer, []).append(node.host)
        for profile, why in unknown:
            yield NotKnown(
                f"whether the profile {profile.name} ({profile.source}) holds: {why}", (node.host,)
            )
    for what, hosts in unmet.items():
        yield _finding(what, tuple(dict.fromkeys(hosts)), fix)
    yield from not_reported(snapshot)


def reader_of(readers: Mapping[str, Reader], key: str) -> Reader | None:
    """Return the reader of a key, or of its section."""
    return readers.get(key) or readers.get(key.partition(".")[0])


def demands_on(
    node: Node, expected: Expected
) -> tuple[tuple[Expectation, ...], tuple[tuple[Profile, Missing], ...]]:
    """Return the policy's demands on the node, and the profiles of which it is not known whether they apply.

    What such a profile might say otherwise is not demanded.
    """
    demands = {
        expectation.key: expectation for expectation in expected.expectations if not expectation.profile
    }
    unknown = []
    for profile in expected.profiles:
        host_demands = {
            expectation.key: expectation
            for expectation in expected.expectations
            if expectation.profile == profile.name
        }
        holds = _holds(profile, node)
        if isinstance(holds, Missing):
            unknown.append((profile, holds))
            demands = {key: demand for key, demand in demands.items() if key not in host_demands}
        elif holds:
            demands |= host_demands
    return tuple(demands.values()), tuple(unknown)


def _holds(profile: Profile, node: Node) -> Fact[bool]:
    names = {node.host, node.host.partition(".")[0]}  # node03 is also found by its full name, node03.cluster
    if profile.hosts and not any(_fits(name, profile.hosts) for name in names):
        return False
    if not profile.gpu_models:
        return True
    gpus = gpus_of(node)
    if isinstance(gpus, Missing):
        return gpus
    models = [gpu.name for gpu in gpus]
    unknown = [model for model in models if isinstance(model, Missing)]
    if unknown:
        return unknown[0]
    return any(isinstance(model, str) and _fits(model, profile.gpu_models) for model in models)


def _fits(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def is_known_absent(missing: Missing) -> bool:
    """Return True if the fact was looked for and is not there."""
    return missing.missing == "absent" and not missing.is_untried


def gpus_of(node: Node) -> Fact[tuple[Gpu, ...]]:
    """Return the GPUs that the driver lists; none where there is no driver on a machine whose PCI bus was read."""
    gpus = node.facts.gpus
    if isinstance(gpus, Missing) and is_known_absent(gpus) and not isinstance(node.facts.pci, Missing):
        return ()
    return gpus


def or_nothing(value: Fact[str]) -> str | Nothing | Missing:
    """Return the value, or Nothing where it was looked for and is not there."""
    return Nothing(value.detail) if isinstance(value, Missing) and is_known_absent(value) else value


def _compared(seen: Seen, expectation: Expectation) -> Unmet | Missing | None:
    """None: as demanded."""
    if isinstance(seen.value, Missing):
        return seen.value
    if is_met(expectation.wanted, seen.value):
        return None
    return Unmet(
        seen.what,
        _shown(seen.value, expectation.wanted),
        str(expectation.wanted),
        seen.source,
        expectation.key,
        expectation.source,
    )


def _shown(value: Value, expected: Wanted) -> str:
    if isinstance(value, Nothing):
        return f"none ({value.why})"
    if isinstance(value, str):
        return value or "empty"
    return str(Number(value, expected.unit if isinstance(expected, Number) else ""))


def is_met(expected: Wanted, value: Value) -> bool:
    """Is the value as demanded?"""
    if isinstance(value, Nothing):
        return False
    match expected:
        case Number(value=least, at_least=at_least):
            if value is None or least is None or isinstance(value, str):
                return value is None and (least is None or at_least)
            return value >= least if at_least else value == least
        case VersionRange(versions=versions):
            return _is_version(versions, str(value))
        case Subnet(any_of=networks):
            return _is_in(str(value), networks)
        case Presence(is_set=is_set):
            return (value != NOT_SET) is is_set
        case Text(any_of=texts, pattern=pattern):
            return _fits(str(value), texts) if pattern else str(value) in texts


def _is_version(versions: str, observed: str) -> bool:
    """Return True if the version is in a PEP 440 range, or equals a version as text or number, local parts aside."""
    if observed == versions:
        return True
    match = _NUMBERS.match(observed)
    if match is None:
        return False
    try:
        version = Version(observed)
    except InvalidVersion:
        version = Version(match[0])  # a kernel is 6.8.0-45-generic
    try:
        is_range = versions[0] in "<>=!~"
        return SpecifierSet(versions if is_range else f"=={versions}").contains(version, prereleases=True)
    except InvalidSpecifier:
        return False  # a text like 6.8.0-45-generic, and another than was seen


def _is_in(observed: str, networks: Iterable[str]) -> bool:
    try:
        address = ipaddress.ip_address(observed.partition("%")[0])
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(network) for network in networks)


def _finding(unmet: Unmet, hosts: tuple[str, ...], fix: str) -> Finding:
    return Finding(
        "error",
        f"{unmet.what} on {named(hosts)} is {unmet.observed}, but the policy requires "
        f"{unmet.wanted} ({unmet.key}, {unmet.policy})",
        hosts,
        (Evidence(hosts, unmet.what, unmet.observed, unmet.wanted, f"{unmet.read}; {unmet.policy}"),),
        (Fix(f"{fix}, or correct {unmet.key} in the policy ({unmet.policy})"),),
    )
