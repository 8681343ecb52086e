"""What NCCL chooses on each node, for people: nodes with the same choice as one line."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.fact import Missing
from ncclcheck.model.report import NcclEntry, NodeEntry, Report
from ncclcheck.nccl.prediction import node_choice
from ncclcheck.report.fold import fold_hosts
from ncclcheck.report.page import Line, Span, line

_SOURCE = {"asked": "asked of the library itself", "predicted": "predicted, not asked"}


def nccl_lines(report: Report, verbose: int) -> Iterator[Line]:
    """The interface per group of nodes and how that is known; and the nodes of which it is not."""
    if not report.nodes:
        return
    yield line(Span("NCCL would use", "bold"))
    yield from choice_lines(report.nccl, verbose)
    told = {entry.host for entry in report.nccl}
    hosts_of: dict[str, list[str]] = {}
    for node in report.nodes:
        if node.status == "reported" and node.host not in told:
            hosts_of.setdefault(_why_unknown(node), []).append(node.host)
    for why, hosts in hosts_of.items():
        yield line(Span("unknown", "bold magenta"), f" on {fold_hosts(hosts)}: {why}", indent=2)


def _why_unknown(node: NodeEntry) -> str:
    choice = node_choice(node.facts) if node.facts else Missing("absent", "no facts")
    return str(choice) if isinstance(choice, Missing) else "it is not in this report"


def choice_lines(entries: tuple[NcclEntry, ...], verbose: int) -> Iterator[Line]:
    """One line per equal choice; with -v one per node, with address, library and reason."""
    groups: dict[tuple[object, ...], list[NcclEntry]] = {}
    for entry in entries:
        own = (entry.host, entry.address) if verbose else ()
        # A reason names addresses, which differ from node to node: only where there is no choice must it be told.
        reason = entry.reason if entry.interface is None else ""
        groups.setdefault((entry.interface, entry.version, entry.source, reason, *own), []).append(entry)
    for group in groups.values():
        yield from _group(group, verbose)


def _group(group: list[NcclEntry], verbose: int) -> Iterator[Line]:
    first = group[0]
    chosen = Span(first.interface or "nothing, it would fail", "bold" if first.interface else "bold red")
    alone = len(group) == 1
    address = f" {first.address}" if first.address and alone else ""
    version = f"NCCL {first.version}, " if first.version else ""
    rest = f"{address} on {fold_hosts(entry.host for entry in group)} ({version}{_SOURCE[first.source]})"
    yield line(chosen, rest, indent=2)
    if first.reason and (verbose or first.interface is None):
        yield line(first.reason, indent=4)
    if verbose and first.library:
        yield line(f"library {first.library}", indent=4)
    if verbose and first.candidates:
        yield line(f"candidates {', '.join(first.candidates)}", indent=4)
