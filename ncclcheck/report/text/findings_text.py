"""Findings for people: severity, code and hosts, the sentence, the evidence, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ncclcheck.model.codec import encode
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.report import Report
from ncclcheck.report.shell import export
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import BLANK, Line, Span, line

SEVERITY_STYLE = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
_MOST_EVIDENCE = 6


def finding_lines(report: Report, verbose: int) -> Iterator[Line]:
    """Every finding in the report's order, findings that differ only in their hosts as one."""
    for number, finding in enumerate(merged_findings(report.findings)):
        if number:
            yield BLANK
        yield from one_finding(finding, verbose)


def one_finding(finding: Finding, verbose: int) -> Iterator[Line]:
    """Severity, code and hosts of a finding, its sentence, what was seen (with `verbose` all of it) and the fixes."""
    where = f"  on {fold_hosts(finding.hosts)}" if finding.hosts else ""
    style = SEVERITY_STYLE[finding.severity]
    yield line(Span(finding.severity, style), f"  {finding.code} ", Span(finding.slug, "bold"), where)
    yield line(finding.summary, indent=2)
    evidence = merged_evidence(finding.evidence)
    shown = evidence if verbose else evidence[:_MOST_EVIDENCE]
    for item in shown:
        yield line(f"seen: {_seen(item)}", indent=4)
    if len(shown) < len(evidence):
        yield line(f"and {len(evidence) - len(shown)} more like these: -v shows all", indent=4)
    for fix in finding.fixes:
        yield from _fix(fix)


def _seen(evidence: Evidence) -> str:
    expected = f", expected {evidence.expected}" if evidence.expected else ""
    where = f" on {fold_hosts(evidence.hosts)}" if evidence.hosts else ""
    source = f" (from {evidence.source})" if evidence.source else ""
    return f"{evidence.subject}: {evidence.observed}{where}{expected}{source}"


def _fix(fix: Fix) -> Iterator[Line]:
    yield line(Span("fix", "bold"), f": {fix.text}", indent=4)
    for command in fix.commands:
        yield line(Span(command, "cyan"), indent=8, wrap=False)
    for name, value in fix.env.items():
        yield line(Span(export(name, value), "cyan"), indent=8, wrap=False)
    if fix.risk:
        yield line(f"risk: {fix.risk}", indent=8)


def merged_evidence(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Merge the evidence: what several hosts have in common is said once."""
    hosts_of: dict[Evidence, list[str]] = {}
    for item in evidence:
        hosts_of.setdefault(replace(item, hosts=()), []).extend(item.hosts)
    return [replace(item, hosts=tuple(hosts)) for item, hosts in hosts_of.items()]


def merged_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Merge the findings that differ only in hosts and evidence; the order stays."""
    groups: dict[bytes, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(encode(replace(finding, hosts=(), evidence=())), []).append(finding)
    return [_joined(group) for group in groups.values()]


def _joined(group: list[Finding]) -> Finding:
    hosts = tuple(dict.fromkeys(host for finding in group for host in finding.hosts))
    return replace(
        group[0], hosts=hosts, evidence=tuple(part for finding in group for part in finding.evidence)
    )
