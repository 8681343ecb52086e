"""NC601 env-differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ncclcheck.checks.chosen import chosen
from ncclcheck.checks.environment._comparison import compared_by_name
from ncclcheck.checks.environment._settings import ENVIRONMENT, places
from ncclcheck.checks.environment._variables import (
    DEVICE_NAMES,
    INTERFACE_NAMES,
    differs_by_nature,
    is_fatal,
    is_read_by_nobody,
    means_the_same,
)
from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.launch.launcher_registry import innermost_first
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.addresses import is_loopback, names_this_machine
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import RankPlace, Snapshot
from ncclcheck.nccl.ifname import parse_gloo
from ncclcheck.nccl.prediction import effective_environment, known_version
from ncclcheck.nccl.rdma import hca
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.versions import NEWEST

_SOURCE = "environment of the job there, and NCCL's config files"
_RANKS_LISTED = 8
_Variable: TypeAlias = "tuple[str, HostComparison[str | None]]"
_MOST_LISTED = 64  # variables that one finding spells out, and findings about variables that no table knows
_BEFORE_AND_AFTER_2_28 = frozenset({"2.27.7", NEWEST})  # versions that read some values differently
_SET_OR_NOT = 2  # groups: those with one value, and those without


@check("NC601", "env-differs", "Every rank has the same settings", needs=("environment",))
def env_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The variables of NCCL, Gloo, torch, UCX and libfabric have the same value on all nodes and for all ranks.

    ## Why it matters
    Every rank reads its own environment. Ranks that disagree about NCCL_ALGO, NCCL_PROTO, NCCL_NET or
    NCCL_P2P_DISABLE choose different algorithms or transports, and hang or exchange wrong sizes. A variable that is
    missing on some nodes, or set on the first node only, was usually lost by the launcher; one from NCCL's config
    file on some nodes is missing in that file on the others.

    ## How to fix
    Set the variable in the same place for all ranks. mpirun only passes variables given with `-x NAME`, ssh passes
    none; a login script or /etc/nccl.conf on one node adds others.

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
    more: list[_Variable] = []
    for name, values in _compared_names(snapshot, environments):
        if differs_by_nature(name) or is_read_by_nobody(name) or _is_one_count_of_gpus(name, values):
            continue
        unset = next((group.hosts for group in values.groups if group.value is None), ())
        if not unset or len(values.groups) > _SET_OR_NOT or name in INTERFACE_NAMES:
            if name not in TABLE:
                more.append((name, values))
            if name in TABLE or len(more) <= _MOST_LISTED:
                yield _different(snapshot, name, values)
        elif values.usual is not None and values.usual.value is None:
            added.setdefault(values.odd_hosts, []).append((name, values))
        else:
            lost.setdefault(unset, []).append((name, values))
    if len(more) > _MOST_LISTED:
        yield _many_differ(more[_MOST_LISTED:])
    yield from _set_or_not_findings(snapshot, tuple(environments), lost, added)


def _set_or_not_findings(
    snapshot: Snapshot,
    all_hosts: tuple[str, ...],
    lost: Mapping[tuple[str, ...], list[_Variable]],
    added: Mapping[tuple[str, ...], list[_Variable]],
) -> Iterator[Finding]:
    """Yield the findings about variables that are set on some nodes and not on others."""
    files = _files(snapshot)
    for hosts, variables in lost.items():
        missing = set(hosts)
        others = tuple(host for host in all_hosts if host not in missing)
        for path, some in _by_origin(files, others, variables):
            is_are, it_them = verb(some, "is", "are"), verb(some, "it", "them")
            cause = f"in {path} there" if path else f"so the launcher may have lost {it_them}"
            where = f"{is_are} not set on {named(hosts)}, but on {named(others)}, {cause}"
            yield _set_or_not(snapshot, hosts, some, where)
    for hosts, variables in added.items():
        for path, some in _by_origin(files, hosts, variables):
            where = f"{verb(some, 'is', 'are')} set on {named(hosts)} only{_why_only_there(snapshot, hosts, path)}"
            yield _set_or_not(snapshot, hosts, some, where)


def _compared_names(
    snapshot: Snapshot, environments: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, HostComparison[str | None]]]:
    """Yield the variables that differ; MASTER_ADDR without the first node where it means the node itself (Kubeflow)."""
    itself = [
        node.host
        for node in snapshot.nodes
        if node.node_rank == 0 and _means_itself(environments.get(node.host, {}).get("MASTER_ADDR", ""))
    ]
    for name, values in compared_by_name(environments):
        if name == "MASTER_ADDR" and itself:
            rest = compare(
                (host, environment.get(name))
                for host, environment in environments.items()
                if host not in itself
            )
            if rest.differs:
                yield name, rest
        else:
            yield name, values


def _means_itself(address: str) -> bool:
    return names_this_machine(address) or address == "0.0.0.0"  # noqa: S104 (to compare with: nothing is bound)


def _is_one_count_of_gpus(name: str, values: HostComparison[str | None]) -> bool:
    """True for CUDA_VISIBLE_DEVICES that names other GPUs on each node, and as many: schedulers do so."""
    shown = [group.value for group in values.groups]
    return (
        name == "CUDA_VISIBLE_DEVICES"
        and len({value and value.count(",") for value in shown}) == 1
        and None not in shown
    )


def _files(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """The config file that a variable of a host comes from, where it does not come from the environment."""
    return {
        (place.host, name): origin
        for place in places(snapshot)
        if place.rank is None
        for name, origin in place.sources.items()
        if origin != ENVIRONMENT
    }


def _by_origin(
    files: Mapping[tuple[str, str], str], hosts: Sequence[str], variables: Sequence[_Variable]
) -> Iterator[tuple[str, list[_Variable]]]:
    """The variables in groups: those that come from one config file on all the hosts, and ("") all others."""
    groups: dict[str, list[_Variable]] = {}
    of_files = {name for _, name in files}
    for name, values in variables:
        paths = {files.get((host, name), "") for host in hosts} if name in of_files else {""}
        groups.setdefault(paths.pop() if len(paths) == 1 else "", []).append((name, values))
    yield from groups.items()


def _why_only_there(snapshot: Snapshot, hosts: Sequence[str], path: str) -> str:
    if path:
        return f", in {path} there"
    first = [node.host for node in snapshot.nodes if node.node_rank == 0]
    if list(hosts) == first:
        return (
            ", the first node, so the launcher may not pass on variables that are set where the "
            "job is started"
        )
    return ""


def _show(value: str | None) -> str:
    return "not set" if value is None else repr(value)


def _different(snapshot: Snapshot, name: str, values: HostComparison[str | None]) -> Finding:
    severity = _severity(snapshot, name, values)
    why = {
        "error": "ranks that disagree about it hang or exchange wrong sizes",
        "warning": "the nodes behave differently",
        "info": "which works if each node's choice works",
    }[severity]
    if name == "GLOO_SOCKET_IFNAME" and severity == "error":
        why = "Gloo makes connections for each name, so nodes with more names wait for those with fewer"
    elif severity == "info" and name in TABLE and name not in INTERFACE_NAMES | DEVICE_NAMES:
        why = "NCCL reads the same from both"
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
    severities = {name: _severity(snapshot, name, values) for name, values in variables}
    fatal = [name for name in names if severities[name] == "error"]
    effect = (
        f"ranks that disagree about {fatal[0]} hang or exchange wrong sizes"
        if fatal
        else "that makes no difference with these values, but what else is set there may be missing too"
        if set(severities.values()) == {"info"}
        else "the nodes behave differently"
    )
    return Finding(
        "error" if fatal else "warning",
        f"{listed(names, _MOST_LISTED)} {where}: {effect}",
        hosts,
        tuple(
            piece
            for name, values in variables[:_MOST_LISTED]
            for piece in evidence(values, name, _SOURCE, _show)
        ),
        (_fix(snapshot, names[0]),),
    )


def _many_differ(variables: Sequence[_Variable]) -> Finding:
    """Return the finding about very many variables that no table knows, beyond those that have one each."""
    first = variables[0][0]
    hosts = dict.fromkeys(host for _, values in variables for host in values.odd_hosts)
    return Finding(
        "warning",
        f"{len(variables)} more variables differ, {first} and others: the nodes behave differently",
        tuple(hosts),
        evidence(variables[0][1], first, _SOURCE, _show),
    )


def _severity(snapshot: Snapshot, name: str, values: HostComparison[str | None]) -> Severity:
    shown = [group.value for group in values.groups]
    if _means_the_same_everywhere(snapshot, name, shown):
        return "info"
    if is_fatal(name) or (name == "GLOO_SOCKET_IFNAME" and len({_count(value) for value in shown}) > 1):
        return "error"
    if name in INTERFACE_NAMES and _every_choice_is_fine(snapshot, name):
        return "info"
    return "info" if name in DEVICE_NAMES and _names_own_devices(snapshot, name, shown) else "warning"


def _count(value: str | None) -> int:
    """How many sets of connections Gloo makes: one for each name, and one where none is given."""
    return len(parse_gloo(value) or ("",))


def _means_the_same_everywhere(snapshot: Snapshot, name: str, values: Sequence[str | None]) -> bool:
    return all(means_the_same(name, values, version) for version in _versions(snapshot))


@once_per_subject
def _versions(snapshot: Snapshot) -> frozenset[str]:
    known = {known_version(node.facts) for node in snapshot.nodes}
    return frozenset(version for version in known if version) or _BEFORE_AND_AFTER_2_28


def _names_own_devices(snapshot: Snapshot, name: str, values: Sequence[str | None]) -> bool:
    """True if every node has a list of its own, and that of NCCL names devices which the node has."""
    if None in values:
        return False
    if name != "NCCL_IB_HCA":
        return True
    for node in snapshot.nodes:
        environment, rdma = node.facts.environment, node.facts.rdma
        if isinstance(environment, Missing) or isinstance(rdma, Missing):
            return False
        pattern = hca.parse(environment.get(name), known_version(node.facts) or NEWEST)
        if not any(
            pattern.matches(port.device, port.port) and not hca.is_ruled_out(port) for port in rdma.ports
        ):
            return False
    return True


def _every_choice_is_fine(snapshot: Snapshot, name: str) -> bool:
    if name == "NCCL_SOCKET_IFNAME":
        choices = chosen(snapshot)
        return len(choices) == len(snapshot.nodes) and not any(
            is_loopback(choice.address) for choice in choices
        )
    for node in snapshot.nodes:
        environment, interfaces = node.facts.environment, node.facts.interfaces
        if isinstance(environment, Missing) or isinstance(interfaces, Missing):
            return False
        interfaces_set = parse_gloo(environment.get(name))
        usable = {
            interface.name for interface in interfaces if interface.addresses and interface.kind != "loopback"
        }
        if interfaces_set is None or not usable.issuperset(interfaces_set):
            return False
    return True


def _fix(snapshot: Snapshot, name: str) -> Fix:
    sources = {launch.source for launch in snapshot.claims}
    commands = (launcher.set_for_all_ranks for launcher in innermost_first() if launcher.name in sources)
    command = next((command for command in commands if command), "")
    return Fix(
        "set it for all ranks, where the launcher passes it on (mpirun needs -x NAME, srun "
        "--export=ALL, ssh passes no variables), and look for it in login scripts and "
        "/etc/nccl.conf of the nodes that differ",
        (command.format(name=name),) if command else (),
    )


def _between_ranks(snapshot: Snapshot, environments: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    odd: dict[str, list[tuple[RankPlace, str | None]]] = {}
    for place in snapshot.ranks:
        for name, value in sorted(place.differs.items()):
            if not differs_by_nature(name, between_ranks=True) and not is_read_by_nobody(name):
                odd.setdefault(name, []).append((place, value))
    for name, seen in odd.items():
        yield _odd_ranks(snapshot, name, seen, environments)


def _odd_ranks(
    snapshot: Snapshot,
    name: str,
    seen: Sequence[tuple[RankPlace, str | None]],
    environments: Mapping[str, Mapping[str, str]],
) -> Finding:
    hosts = tuple(dict.fromkeys(place.host for place, _ in seen))
    shown = listed(
        (f"{_show(value)} for rank {place.rank} on {place.host}" for place, value in seen), _RANKS_LISTED
    )
    lost = all(value is None for _, value in seen)
    first = (
        "the first rank there has it, so the launcher may have lost it"
        if lost
        else "the first rank there does not have it"
        if all(environments.get(host, {}).get(name) is None for host in hosts)
        else "the first rank there has another value"
    )
    values = [environments.get(host, {}).get(name) for host in hosts] + [value for _, value in seen]
    is_same = _means_the_same_everywhere(snapshot, name, values)
    return Finding(
        "info" if is_same else "error" if is_fatal(name) else "warning",
        f"{name} differs between ranks of one node: {shown}; {first}",
        hosts,
        tuple(
            Evidence(
                (place.host,),
                f"{name} of rank {place.rank} (local rank {place.local_rank})",
                _show(value),
                _show(environments.get(place.host, {}).get(name)),
                "environment of that process, against the node's first",
            )
            for place, value in seen
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
