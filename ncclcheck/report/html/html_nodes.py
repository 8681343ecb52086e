"""The nodes as the HTML page shows them: one row of words each, and equal nodes as one group."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.finding import Finding
from ncclcheck.model.report import NcclEntry, NodeEntry, Report
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.plain import plain

COLUMNS = ("NCCL interface", "network", "NCCL", "torch", "GPUs", "driver", "kernel", "CPUs")
_NOT_KNOWN = "?"


class NodeRow(Struct, frozen=True):
    """What a node has of its own: everything else it shares with its group."""

    host: str
    node_rank: int
    address: str
    group: int


class NodeGroup(Struct, frozen=True):
    """Nodes that are equal in all that the table shows but name, rank and address. `findings`: numbers on the page."""

    hosts: str  # folded
    count: int
    status: str
    findings: tuple[int, ...]
    worst: str  # severity, or empty
    values: tuple[str, ...]  # one for each of the table's columns


class NodeTable(Struct, frozen=True):
    """`columns` are those in which nodes differ; `common` names and values of those in which all agree."""

    columns: tuple[str, ...]
    common: tuple[tuple[str, str], ...]
    groups: tuple[NodeGroup, ...]
    rows: tuple[NodeRow, ...]


class NcclGroup(Struct, frozen=True):
    """Hosts with the same choice."""

    hosts: tuple[str, ...]
    interface: str
    network: str
    version: str
    source: str
    why: str


class _Key(Struct, frozen=True):
    status: str
    findings: tuple[int, ...]
    values: tuple[str, ...]


def node_table(report: Report, findings: list[Finding]) -> NodeTable:
    """Return the table of all nodes, groups with findings and silent nodes first. `findings` are in page order."""
    on_host: dict[str, list[int]] = {}
    for number, finding in enumerate(findings):
        for host in finding.hosts:
            on_host.setdefault(host, []).append(number)
    choices = {entry.host: entry for entry in report.nccl}
    keys = [
        _Key(node.status, tuple(on_host.get(node.host, ())), _values(node, choices.get(node.host)))
        for node in report.nodes
    ]
    values_of = [dict.fromkeys(key.values[at] for key in keys if key.values) for at in range(len(COLUMNS))]
    shown = [at for at, values in enumerate(values_of) if len(values) > 1]
    common = [
        (COLUMNS[at], value)
        for at, values in enumerate(values_of)
        if len(values) == 1
        for value in values
        if value
    ]
    order = sorted(Counter(keys).items(), key=lambda item: (_worst_rank(item[0], findings), item[1]))
    number_of = {key: number for number, (key, _) in enumerate(order)}
    members: list[list[str]] = [[] for _ in order]
    rows = []
    for node, key in zip(report.nodes, keys, strict=True):
        group = number_of[key]
        members[group].append(node.host)
        choice = choices.get(node.host)
        address = plain(choice.address) if choice and choice.address else ""
        rows.append(NodeRow(plain(node.host), node.node_rank, address, group))
    groups = [
        NodeGroup(
            hosts=fold_hosts(hosts),
            count=len(hosts),
            status=key.status,
            findings=key.findings,
            worst=_worst(key, findings),
            values=tuple(key.values[at] if key.values else "" for at in shown),
        )
        for (key, _), hosts in zip(order, members, strict=True)
    ]
    return NodeTable(tuple(COLUMNS[at] for at in shown), tuple(common), tuple(groups), tuple(rows))


def _worst(key: _Key, findings: list[Finding]) -> str:
    severities = {findings[number].severity for number in key.findings}
    return next((word for word in ("error", "warning", "info") if word in severities), "")


def _worst_rank(key: _Key, findings: list[Finding]) -> tuple[int, int]:
    worst = _worst(key, findings)
    return (key.status != "silent", ("error", "warning", "info", "").index(worst))


def _values(node: NodeEntry, choice: NcclEntry | None) -> tuple[str, ...]:
    """Return the words of each column; none for a node of which nothing is known."""
    if not node.facts:
        return ()
    software, limits = node.facts.software, node.facts.limits
    return tuple(
        plain(value)
        for value in (
            _interface(choice),
            choice.network or "" if choice else "",
            choice.version or "" if choice else "",
            "" if isinstance(software, Missing) else _word(software.torch),
            _gpus(node.facts.gpus),
            "" if isinstance(software, Missing) else _word(software.driver),
            "" if isinstance(software, Missing) else software.kernel,
            "" if isinstance(limits, Missing) else _word(limits.cpus),
        )
    )


def _interface(choice: NcclEntry | None) -> str:
    if choice is None:
        return _NOT_KNOWN
    return choice.interface or ("none, it fails" if choice.fails else _NOT_KNOWN)


def _word(value: Fact[str] | Fact[int]) -> str:
    """Return the value as a word: empty where there is no such thing, "?" where it could not be read."""
    if isinstance(value, Missing):
        return "" if value.missing == "absent" else _NOT_KNOWN
    return str(value)


def _gpus(gpus: Fact[tuple[Gpu, ...]]) -> str:
    if isinstance(gpus, Missing):
        return "" if gpus.missing == "absent" else _NOT_KNOWN
    names = Counter(_NOT_KNOWN if isinstance(gpu.name, Missing) else gpu.name for gpu in gpus)
    return ", ".join(f"{count} x {name}" for name, count in names.items())


def nccl_groups(report: Report) -> list[NcclGroup]:
    """NCCL's choices, equal ones as one with the first one's reason; those that fail first."""
    groups: dict[tuple[bool, str, str, str, str], list[NcclEntry]] = {}
    for entry in report.nccl:
        network = entry.network or _NOT_KNOWN
        key = (not entry.fails, _interface(entry), network, entry.version or _NOT_KNOWN, entry.source)
        groups.setdefault(key, []).append(entry)
    return [
        NcclGroup(tuple(nccl_entry.host for nccl_entry in group), *map(plain, (*key[1:], group[0].reason)))
        for key, group in sorted(groups.items(), key=lambda item: item[0])
    ]
