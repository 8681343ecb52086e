"""What `isolate` found, for people: a table of the named nodes, the coverage, and lines to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from ncclcheck.model.benchmarks.isolation import BadNode, PairIsolation
from ncclcheck.model.formats.choices import NodeList
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.report.namesakes import Namesake, namesakes
from ncclcheck.report.node_lists import bad_nodes, node_list, unlisted
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line
from ncclcheck.report.text.plain import plain

_HEADER = ("node", "verdict", "sends", "receives", "usual", "tests", "chance that it is good")
_COMMANDS: tuple[NodeList, ...] = ("drain-slurm", "cordon")
_MOST_COMMANDS = 8
_LOST = ("hang", "died")


def isolation_lines(report: Report) -> Iterator[Line]:
    """Yield the named nodes, links and groups, how many pairs were tested, and what leaves the nodes out."""
    isolation = report.isolation
    if isolation is None:
        return
    rounds, coverage = len(isolation.rounds), isolation.coverage
    yield line(
        Span("pairs", "bold"),
        f": {coverage.pairs_tested} of {coverage.pairs} were tested in {plural(rounds, 'round')} "
        f"(--seed {isolation.seed}){_usual(isolation)}",
    )
    if isolation.nodes:
        yield from _table(isolation, namesakes(report))
        if any(map(_has_chance, isolation.nodes)):
            chance = f"{isolation.false_name_chance:.2g}"
            yield line(f"expected number of good nodes among those with a chance: {chance}", indent=2)
    for link in isolation.links:
        yield line(f"path from {plain(link.from_host)} to {plain(link.to_host)}: {link.verdict}", indent=2)
    for group in isolation.groups:
        yield line(f"group {fold_hosts(group.hosts)}: {group.verdict.replace('_', ' ')}", indent=2)
    yield from _rings(isolation)
    if isolation.undecided:
        yield line(f"undecided: {fold_hosts(isolation.undecided)}", indent=2)
    if isolation.unheard is not None:
        yield line(f"{fold_hosts(isolation.unheard.hosts)} fell silent: {isolation.unheard.words}", indent=2)
    if bad_nodes(report):
        yield from _to_paste(report)


def _to_paste(report: Report) -> Iterator[Line]:
    """Yield the lines that leave the bad nodes out."""
    yield line(Span("without them", "bold"), ", to paste (nothing was run):")
    for option, listed in (
        ("srun --exclude=", node_list(report, "exclude").strip()),
        ("--hosts ", node_list(report, "hosts").strip()),
    ):
        if listed:
            yield line(f"{option}{shlex.quote(listed)}", indent=2, wrap=False)
    yield line("--print hostfile: the others, one per line", indent=2)
    for kind in _COMMANDS:
        commands = node_list(report, kind).splitlines()
        for command in commands[:_MOST_COMMANDS]:
            yield line(command, indent=2, wrap=False)
        if len(commands) > _MOST_COMMANDS:
            yield line(f"and {len(commands) - _MOST_COMMANDS} more (--print {kind})", indent=2)
    if odd := unlisted(report):
        yield line(f"in none of these lines, since they are no host names: {fold_hosts(odd)}", indent=2)
    for host, namesake in list(namesakes(report).items())[:_MOST_COMMANDS]:
        words = f"{plain(host)} is {plain(namesake.words)}: another node calls itself {plain(namesake.name)}"
        yield line(words, indent=2)


def _rings(isolation: PairIsolation) -> Iterator[Line]:
    for ring in isolation.rings:
        rate = ring.outcome if ring.rate_gbit_s is None else f"{ring.rate_gbit_s:.3g} Gbit/s"
        yield line(f"{len(ring.hosts)} nodes at once, in a ring: {rate}", indent=2)
    if isolation.only_from_nodes is not None:
        yield line(f"slow only from {isolation.only_from_nodes} nodes at once on", indent=2)


def _usual(isolation: PairIsolation) -> str:
    if isolation.reference_gbit_s is None:
        return ""
    disturbed = f"; {isolation.disturbed:.1%} of the tests between good nodes were disturbed"
    return f"; usual: {isolation.reference_gbit_s:.3g} Gbit/s each way{disturbed}"


def _table(isolation: PairIsolation, shared: Mapping[str, Namesake]) -> Iterator[Line]:
    rows = [_HEADER, *(_row(node, isolation, shared.get(node.host)) for node in isolation.nodes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield line("  ".join(cells).rstrip(), indent=2, wrap=False)


def _row(node: BadNode, isolation: PairIsolation, namesake: Namesake | None) -> tuple[str, ...]:
    usual = "?" if isolation.reference_gbit_s is None else f"{isolation.reference_gbit_s:.3g} Gbit/s"
    sends, receives = ("-" if part is None else f"{part:.0%}" for part in (node.sends, node.receives))
    rails = f" (GPU {', '.join(map(str, node.rails))})" if node.rails else ""
    return (
        plain(node.host) + (f" ({plain(namesake.words)})" if namesake is not None else ""),
        f"{node.verdict}{rails}",
        sends,
        receives,
        usual,
        str(node.tests),
        f"{node.false_name_chance:.2g}" if _has_chance(node) else "-",
    )


def _has_chance(node: BadNode) -> bool:
    """Return whether the chance follows from tests: a node that was lost is named for that alone."""
    return node.verdict not in _LOST or node.false_name_chance > 0
