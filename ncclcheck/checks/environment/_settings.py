"""The environments that a job's processes act on, as the checks of this family judge them, and how they report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile, NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.snapshot import RankPlace, Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.environment import source_of
from ncclcheck.nccl.number import number
from ncclcheck.nccl.prediction import effective_environment, known_version

HIDDEN = frozenset({"(redacted)", "(set)"})  # what the facts hold in place of a value
ENVIRONMENT = "environment"
_SHOWN = 80
_RANKS_LISTED = 8
_MOST_PLACES = (
    1 << 12
)  # whose sources are remembered: the places of most clusters hold few different environments
# Where rules change: enough versions to tell what holds for all of them.
_SAMPLES = (
    "2.18.1",
    "2.20.5",
    "2.21.5",
    "2.23.4",
    "2.24.3",
    "2.26.2",
    "2.28.9",
    "2.29.7",
    "2.30.7",
    "2.32.3",
)


class EnvironmentPlace(Struct, frozen=True):
    """The environment of a node's first rank, config files included, or of a further rank that differs from it.

    `changed` names what that further rank has otherwise; None: all of it is judged.
    """

    host: str
    rank: int | None
    environment: Mapping[str, str]
    sources: Mapping[str, str]
    changed: frozenset[str] | None
    nccl: str | None
    torch: str | None
    facts: NodeFacts

    def value(self, name: str) -> str | None:
        """Return the value in effect; None where it is not set, or hidden."""
        found = self.environment.get(name)
        return None if found in HIDDEN else found

    def number(self, name: str, default: int) -> int:
        """Return the number that NCCL reads in a numeric variable; `default` where it is not set or hidden."""
        return number(self.value(name), default, self.nccl or versions.NEWEST)

    def versions(self) -> tuple[str, ...]:
        """Return the NCCL versions to judge by: the node's own, or a sample of all where that is not known."""
        return (self.nccl,) if self.nccl is not None else _SAMPLES


class SettingFault(Struct, frozen=True):
    """One fault of one place: `what` with its values, `why` it matters. `names` are the variables it is about."""

    severity: Severity
    names: tuple[str, ...]
    what: str
    why: str
    expected: str
    source: str
    fix: Fix


class OneAnswer(Struct, frozen=True):
    """What a judge cannot tell of a place."""

    reason: str


Judged = SettingFault | OneAnswer
Judge = Callable[[EnvironmentPlace], Iterable[Judged]]


def findings(snapshot: Snapshot, judge: Judge) -> Iterator[Answer]:
    """Yield what `judge` answers for every place, equal faults as one finding, then what is not known."""
    groups: dict[tuple[str, ...], list[tuple[EnvironmentPlace, SettingFault]]] = {}
    for place in places(snapshot):
        for case in judge(place):
            if isinstance(case, OneAnswer):
                yield NotKnown(case.reason, (place.host,))
            elif place.changed is None or place.changed.intersection(case.names):
                origins = (_origin(place, name) for name in case.names)
                fix = (f"{name}={value}" for name, value in case.fix.env.items())
                groups.setdefault((case.severity, case.what, case.why, *origins, *fix), []).append(
                    (place, case)
                )
    for cases in groups.values():
        yield _finding(cases)
    yield from _not_read(snapshot)


def places(snapshot: Snapshot) -> Iterator[EnvironmentPlace]:
    """Every environment that is known: one per node, and one for each further rank that differs."""
    return iter(_known_places(snapshot))


@once_per_subject
def _known_places(snapshot: Snapshot) -> tuple[EnvironmentPlace, ...]:
    return tuple(_places(snapshot))


def _places(snapshot: Snapshot) -> Iterator[EnvironmentPlace]:
    ranks: dict[str, list[RankPlace]] = {}
    for rank in snapshot.ranks:
        ranks.setdefault(rank.host, []).append(rank)
    for node in snapshot.nodes:
        facts = node.facts
        if isinstance(facts.environment, Missing):
            continue
        yield _place(node.host, facts, facts.environment, None)
        for rank in ranks.get(node.host, ()):
            if rank.differs:
                process_environment = {
                    **facts.environment,
                    **{name: value for name, value in rank.differs.items() if value is not None},
                }
                for name in [name for name, value in rank.differs.items() if value is None]:
                    process_environment.pop(name, None)
                yield _place(node.host, facts, process_environment, rank)


def _place(
    host: str, facts: NodeFacts, process_environment: Mapping[str, str], rank: RankPlace | None
) -> EnvironmentPlace:
    """Return the place of the node's first rank, or of the further one that is given."""
    version = known_version(facts)
    if process_environment is facts.environment:
        everything = effective_environment(facts)
    else:
        everything = effective_environment(
            facts, {**dict.fromkeys(_own_settings(facts)), **process_environment}
        )
    environment = dict(process_environment) if isinstance(everything, Missing) else everything
    sources: Mapping[str, str] = {}
    if not isinstance(facts.nccl, Missing):
        files = _ConfigFiles(
            SameObject(facts.nccl.config_files), version or versions.NEWEST, facts.nccl.home_set
        )
        sources = _sources(SameObject(environment), SameObject(process_environment), files)
    rank_number = None if rank is None else rank.rank
    changed = None if rank is None else frozenset(rank.differs)
    return EnvironmentPlace(host, rank_number, environment, sources, changed, version, _torch(facts), facts)


class _ConfigFiles(Struct, frozen=True):
    """NCCL's config files, the release whose rules they are read by, and whether HOME is set."""

    files: SameObject[tuple[NcclConfigFile, ...]]
    rules: str
    home_set: bool


@lru_cache(maxsize=_MOST_PLACES)
def _sources(
    environment: SameObject[Mapping[str, str]],
    process_environment: SameObject[Mapping[str, str]],
    config: _ConfigFiles,
) -> Mapping[str, str]:
    """Return where each setting comes from. Worked out once for all nodes that hold the same objects."""
    return {
        name: source_of(
            name, process_environment.value, config.files.value, config.rules, home_set=config.home_set
        )
        or ENVIRONMENT
        for name in environment.value
    }


def _own_settings(facts: NodeFacts) -> Mapping[str, str]:
    return {} if isinstance(facts.environment, Missing) else facts.environment


def _torch(facts: NodeFacts) -> str | None:
    """Return the release of torch, also of builds like 2.6.0a0+nv25.1."""
    if isinstance(facts.software, Missing) or isinstance(facts.software.torch, Missing):
        return None
    match = re.match(r"\d+\.\d+(\.\d+)?", facts.software.torch)
    return match[0] if match else None


def _not_read(snapshot: Snapshot) -> Iterator[Answer]:
    for node in snapshot.nodes:
        facts = node.facts
        if isinstance(facts.environment, Missing) or isinstance(facts.nccl, Missing):
            continue  # the registry says so of every section that a check needs
        everything = effective_environment(facts)
        if isinstance(everything, Missing):
            yield NotKnown(f"NCCL's config files: {everything}", (node.host,))
    yield from not_reported(snapshot)


def _finding(cases: list[tuple[EnvironmentPlace, SettingFault]]) -> Finding:
    first_place, first = cases[0]
    hosts = tuple(dict.fromkeys(place.host for place, _ in cases))
    ranks = [place.rank for place, _ in cases if place.rank is not None]
    who = f"{named(hosts)}{_ranks(ranks) if len(ranks) == len(cases) else ''}"
    files = list(dict.fromkeys(_origin(first_place, name) for name in first.names))
    where = f", set in {' and '.join(files)}" if files != [ENVIRONMENT] else ""
    return Finding(
        first.severity,
        f"{first.what} on {who}{where}: {first.why}",
        hosts,
        tuple(_evidence(place, case) for place, case in cases),
        (_fix_where_it_is_set(first_place, first),),
    )


def _ranks(ranks: list[int]) -> str:
    return f", {verb(ranks, 'rank', 'ranks')} {listed(ranks, _RANKS_LISTED)}"


def _origin(place: EnvironmentPlace, name: str) -> str:
    return place.sources.get(name, ENVIRONMENT)


def _evidence(place: EnvironmentPlace, case: SettingFault) -> Evidence:
    rank = f" of rank {place.rank}" if place.rank is not None else ""
    read = ", ".join(dict.fromkeys(_origin(place, name) for name in case.names))
    return Evidence(
        (place.host,),
        " and ".join(case.names) + rank,
        _observed(place, case.names),
        case.expected,
        f"{read}; {case.source}" if case.source else read,
    )


def _observed(place: EnvironmentPlace, names: tuple[str, ...]) -> str:
    if len(names) == 1:
        value = place.environment.get(names[0])
        return "not set" if value is None else shown("_", value).removeprefix("_=")
    return ", ".join(shown(name, place.environment.get(name)) for name in names)


def _fix_where_it_is_set(place: EnvironmentPlace, case: SettingFault) -> Fix:
    """Return the fix; where the value comes from a file, the fix is to change that file."""
    files = [origin for name in case.names if (origin := _origin(place, name)) != ENVIRONMENT]
    if not files:
        return case.fix
    return Fix(
        f"{case.fix.text}; it is set in {' and '.join(dict.fromkeys(files))}", (), case.fix.env, case.fix.risk
    )


def shown(name: str, value: str | None) -> str:
    """`NAME=value` for a sentence: blanks and other odd characters made visible, long values cut."""
    name = name if re.fullmatch(r"\w+", name) else repr(name)
    if value is None:
        return f"{name} is not set"
    text = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    return f"{name}={text}" if text and re.fullmatch(r"[\w.,:;/=^%+@|~-]+", text) else f"{name}={text!r}"


def unset(*names: str, text: str = "remove it") -> Fix:
    """Return the fix that removes the variables."""
    return Fix(text, (f"unset {' '.join(names)}",))
