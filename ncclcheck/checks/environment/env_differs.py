"""NC601 env-differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ncclcheck.checks.addresses import is_loopback
from ncclcheck.checks.chosen import chosen
from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.majority import Comparison, compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.variables import INTERFACE_NAMES, differs_by_nature, is_fatal
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.snapshot import RankPlace, Snapshot
from ncclcheck.nccl.ifname import parse_gloo
from ncclcheck.nccl.prediction import effective_environment

_SOURCE = "environment of the job there, and NCCL's config files"
_RANKS_LISTED = 8
_Variable: TypeAlias = "tuple[str, Comparison[str | None]]"
_SET_OR_NOT = 2  # groups: those with one value, and those without


@check("NC601", "env-differs", "Every rank has the same settings", needs=("environment",))
def env_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The variables of NCCL, Gloo, torch, UCX and libfabric have the same value on all nodes and for all ranks.

    ## Why it matters
    Every rank decides from its own environment. Ranks that disagree about NCCL_ALGO, NCCL_PROTO, NCCL_NET or
    NCCL_P2P_DISABLE choose different algorithms or transports, and hang or exchange wrong sizes. A variable that is
    missing on some nodes was mostly lost by the launcher.

    ## How to fix
    Set the variable in the same place for all ranks. mpirun passes only what `-x NAME` names, ssh passes nothing; a
    login script or /etc/nccl.conf on one node adds its own.

    ## Source
    NCCL src/misc/param.cc (environment first, then ~/.nccl.conf and /etc/nccl.conf); read where the ranks run.
    """
    environments: dict[str, Mapping[str, str]] = {}
    for node in snapshot.nodes:
        effective = effective_environment(node.facts)
        if not isinstance(effective, Missing):
            environments[node.host] = effective
        elif not isinstance(node.facts.environment, Missing):
            environments[node.host] = node.facts.environment
            yield NotKnown(f"NCCL's config files: {effective}", (node.host,))
    yield from _between_nodes(snapshot, environments)
    yield from _between_ranks(snapshot, environments)
    yield from _ranks_without_word(snapshot)
    yield from not_reported(snapshot)


def _between_nodes(snapshot: Snapshot, environments: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    lost: dict[tuple[str, ...], list[_Variable]] = {}
    added: dict[tuple[str, ...], list[_Variable]] = {}
    for name in sorted({name for environment in environments.values() for name in environment}):
        values = compare((host, environment.get(name)) for host, environment in environments.items())
        if not values.differs or differs_by_nature(name):
            continue
        unset = next((group.hosts for group in values.groups if group.value is None), ())
        if not unset or len(values.groups) > _SET_OR_NOT or name in INTERFACE_NAMES:
            yield _different(snapshot, name, values)
        elif values.usual is not None and values.usual.value is None:
            added.setdefault(values.odd_hosts, []).append((name, values))
        else:
            lost.setdefault(unset, []).append((name, values))
    for hosts, variables in lost.items():
        others = named(host for host in environments if host not in hosts)
        verbs = verb(variables, "is", "are"), verb(variables, "it", "them")
        where = (
            f"{verbs[0]} not set on {named(hosts)}, but on {others}, so the launcher may have lost {verbs[1]}"
        )
        yield _set_or_not(snapshot, hosts, variables, where)
    for hosts, variables in added.items():
        where = f"{verb(variables, 'is', 'are')} set on {named(hosts)} only"
        yield _set_or_not(snapshot, hosts, variables, where)


def _show(value: str | None) -> str:
    return "not set" if value is None else repr(value)


def _different(snapshot: Snapshot, name: str, values: Comparison[str | None]) -> Finding:
    severity = _severity(snapshot, name)
    why = {
        "error": "ranks that disagree about it hang or exchange wrong sizes",
        "warning": "the nodes do not behave alike",
        "info": "which is fine as long as each node's choice is",
    }[severity]
    return Finding(
        severity,
        f"{name} differs: {sentence(values, _show)}: {why}",
        values.odd_hosts,
        evidence(values, name, _SOURCE, _show),
        (_fix(snapshot, name),) if severity != "info" else (),
    )


def _set_or_not(
    snapshot: Snapshot, hosts: tuple[str, ...], variables: Sequence[_Variable], where: str
) -> Finding:
    names = [name for name, _ in variables]
    fatal = [name for name in names if is_fatal(name)]
    effect = (
        f"ranks that disagree about {fatal[0]} hang or exchange wrong sizes"
        if fatal
        else "the nodes do not behave alike"
    )
    return Finding(
        "error" if fatal else "warning",
        f"{', '.join(names)} {where}: {effect}",
        hosts,
        tuple(piece for name, values in variables for piece in evidence(values, name, _SOURCE, _show)),
        (_fix(snapshot, names[0]),),
    )


def _severity(snapshot: Snapshot, name: str) -> Severity:
    if is_fatal(name):
        return "error"
    if name in INTERFACE_NAMES and _every_choice_is_fine(snapshot, name):
        return "info"
    return "warning"


def _every_choice_is_fine(snapshot: Snapshot, name: str) -> bool:
    if name == "NCCL_SOCKET_IFNAME":
        choices = chosen(snapshot)
        return len(choices) == len(snapshot.nodes) and not any(is_loopback(one.address) for one in choices)
    for node in snapshot.nodes:
        environment, interfaces = node.facts.environment, node.facts.interfaces
        if isinstance(environment, Missing) or isinstance(interfaces, Missing):
            return False
        wanted = parse_gloo(environment.get(name))
        usable = {one.name for one in interfaces if one.addresses and one.kind != "loopback"}
        if wanted is None or not usable.issuperset(wanted):
            return False
    return True


def _fix(snapshot: Snapshot, name: str) -> Fix:
    by_mpirun = any(launch.source == "openmpi" for launch in snapshot.claims)
    command = (f"mpirun -x {name} ...",) if by_mpirun else ()
    return Fix(
        "set it alike for all ranks, where the launcher passes it on (mpirun needs -x NAME, ssh passes nothing), and "
        "look for it in login scripts and /etc/nccl.conf of the odd nodes",
        command,
    )


def _between_ranks(snapshot: Snapshot, environments: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    odd: dict[str, list[tuple[RankPlace, str | None]]] = {}
    for place in snapshot.ranks:
        for name, value in sorted(place.differs.items()):
            if not differs_by_nature(name, between_ranks=True):
                odd.setdefault(name, []).append((place, value))
    for name, places in odd.items():
        yield _odd_ranks(snapshot, name, places, environments)


def _odd_ranks(
    snapshot: Snapshot,
    name: str,
    places: Sequence[tuple[RankPlace, str | None]],
    environments: Mapping[str, Mapping[str, str]],
) -> Finding:
    hosts = tuple(dict.fromkeys(place.host for place, _ in places))
    shown = ", ".join(
        f"{_show(value)} for rank {place.rank} on {place.host}" for place, value in places[:_RANKS_LISTED]
    )
    more = f" and {len(places) - _RANKS_LISTED} more" if len(places) > _RANKS_LISTED else ""
    return Finding(
        "error" if is_fatal(name) else "warning",
        f"{name} differs between ranks of one node: {shown}{more}; the first rank there has another value",
        hosts,
        tuple(
            Evidence(
                (place.host,),
                f"{name} of rank {place.rank} (local rank {place.local_rank})",
                _show(value),
                _show(environments.get(place.host, {}).get(name)),
                "environment of that process, against the node's first",
            )
            for place, value in places
        ),
        (_fix(snapshot, name),),
    )


def _ranks_without_word(snapshot: Snapshot) -> Iterator[NotKnown]:
    heard = {(place.host, place.local_rank) for place in snapshot.ranks}
    mute = [
        host
        for launch, host in zip(snapshot.claims, snapshot.claim_hosts, strict=False)
        if not launch.is_agent and (host, launch.local_rank) not in heard
    ]
    if mute:
        yield NotKnown("the environment of further ranks is not known", tuple(dict.fromkeys(mute)))
