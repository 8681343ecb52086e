"""What NCCL chooses on each node, for people: nodes with the same choice as one line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import HcaChoice
from ncclcheck.model.report import NcclEntry, NodeEntry, Report
from ncclcheck.nccl.explanation import explain
from ncclcheck.nccl.transport import hca_words
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line

_SOURCE = {"asked": "asked of the library itself", "predicted": "predicted, not asked"}
_MOST_NAMED_PORTS = 3


def nccl_lines(report: Report, verbose: int) -> Iterator[Line]:
    """Interface, network and HCAs per group of nodes and how that is known; and the nodes of which it is not."""
    if report.of == "image" or not any(node.status == "reported" for node in report.nodes):
        return
    yield line(Span("NCCL would use", "bold"))
    yield from choice_lines(report.nccl, verbose)
    explained_hosts = {entry.host for entry in report.nccl}
    hosts_of: dict[str, list[str]] = {}
    for node in report.nodes:
        if node.status == "reported" and node.host not in explained_hosts:
            hosts_of.setdefault(_why_unknown(node), []).append(node.host)
    for why, hosts in hosts_of.items():
        yield line(Span("unknown", "bold magenta"), f" on {fold_hosts(hosts)}: {why}", indent=2)


def _why_unknown(node: NodeEntry) -> str:
    choice = explain(node.facts) if node.facts else Missing("absent", "no facts")
    return str(choice) if isinstance(choice, Missing) else "it is not in this report"


def choice_lines(entries: tuple[NcclEntry, ...], verbose: int) -> Iterator[Line]:
    """One line per equal choice; with -v one per node, with all reasons and what would change the choice."""
    groups: dict[tuple[object, ...], list[NcclEntry]] = {}
    for entry in entries:
        identity = (entry.host, entry.address) if verbose else ()
        key = (
            entry.interface,
            entry.network,
            entry.hcas,
            entry.version,
            entry.source,
            _required_reasons(entry),
            identity,
        )
        groups.setdefault(key, []).append(entry)
    for group in groups.values():
        yield from _group(group, verbose)


def _required_reasons(entry: NcclEntry) -> tuple[str, ...]:
    """Return the reasons that even a short page gives: why there is no choice."""
    reasons = (entry.reason,) if entry.interface is None else ()
    return (*reasons, entry.network_reason) if entry.network is None and entry.fails else reasons


def _group(group: list[NcclEntry], verbose: int) -> Iterator[Line]:
    first = group[0]
    alone = len(group) == 1
    address = f" {first.address}" if first.address and alone else ""
    version = f"NCCL {first.version}, " if first.version else ""
    source = _SOURCE[first.source] + (
        "; the network is predicted" if first.source == "asked" and first.network else ""
    )
    hosts = fold_hosts(entry.host for entry in group)
    yield line(_chosen(first), f"{address}{_network(first)} on {hosts} ({version}{source})", indent=2)
    for reason in filter(None, (first.reason, first.network_reason) if verbose else _required_reasons(first)):
        yield line(reason, indent=4)
    if verbose:
        yield from _details(first)


def _chosen(entry: NcclEntry) -> Span:
    if entry.interface is not None:
        return Span(entry.interface, "bold")
    return (
        Span("nothing, it would fail", "bold red")
        if entry.fails
        else Span("interface not known", "bold magenta")
    )


def _network(entry: NcclEntry) -> str:
    if entry.network is None:
        return ", but no network: it would fail" if entry.fails and entry.interface is not None else ""
    ports = f" with {_short(entry.hcas)}" if entry.hcas else ""
    return f", network {entry.network}{ports}"


def _short(hcas: tuple[HcaChoice, ...]) -> str:
    """Return the ports with their GID; of many with the same GID the first and the last."""
    parts = []
    for _, one_gid in groupby(hcas, key=lambda hca: hca.gid_index):
        group = tuple(one_gid)
        words = hca_words(group)
        if len(group) > _MOST_NAMED_PORTS:
            words = f"{len(group)} ports {group[0].device}:{group[0].port} to {hca_words(group[-1:])}"
        parts.append(words)
    return ", ".join(parts)


def _details(entry: NcclEntry) -> Iterator[Line]:
    if entry.library:
        yield line(f"library {entry.library}", indent=4)
    if entry.candidates:
        yield line(f"candidates {', '.join(entry.candidates)}", indent=4)
    if len(entry.hcas) > _MOST_NAMED_PORTS:
        yield line(f"HCAs {hca_words(entry.hcas)}", indent=4)
    for gpu, pairs in groupby(entry.gpu_nic, key=lambda pair: pair.gpu):
        nics_at: dict[str, list[str]] = {}
        for pair in pairs:
            nics_at.setdefault(pair.distance, []).append(pair.nic)
        yield line(
            f"GPU {gpu}: " + "; ".join(f"{path} {', '.join(nics)}" for path, nics in nics_at.items()),
            indent=4,
        )
    if entry.gpudirect:
        yield line(f"GPUDirect RDMA {entry.gpudirect}", indent=4)
    for change in entry.changes:
        yield line(f"{change}", indent=4)
