"""Several reports of single nodes as one report of the fleet: `ncclcheck report merge`.

What the files say stays: every outcome, every finding. In addition the checks that compare nodes run over the facts of
all files together, as they would in one run, except those that judge what nodes do together: the nodes never met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.exit_code import BUG, INTERRUPTED, UNKNOWN
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import SEVERITIES, CheckRun, Finding, Outcome
from ncclcheck.model.formats.choices import FailOn
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import (
    SCHEMA_VERSION,
    Advice,
    CheckEntry,
    Fleet,
    FleetCheck,
    NodeEntry,
    Report,
)
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.report.build import this_tool
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.verdict import verdict

NOT_ONE_JOB = Missing("absent", "the nodes were checked one by one")
COMMAND = "merge"
# Checks that need nodes of one run: which nodes reach each other, how fast, and what changed during a run.
_TOGETHER = frozenset(
    {
        "address-duplicate", "peer-filtered", "peer-refused", "peer-no-route", "peer-one-way", "mtu-blackhole",
        "interface-slow", "latency-outlier", "route-asymmetric", "packet-loss", "link-flapped", "torch-unusable",
        "path-not-shared", "clock-offset", "prediction-differs",
    }
)  # fmt: skip
_FAMILIES = (
    "NC2",
    "NC3",
    "NC4",
    "NC5",
    "NC6",
    "NC7",
)  # of what a node is, not of how a job was started or went
_WORST_FIRST: tuple[Outcome, ...] = ("crashed", "found", "unknown", "passed", "not_applicable", "ignored")
_TELLS_NOTHING = (BUG, INTERRUPTED, UNKNOWN)
_GATES: tuple[FailOn, ...] = ("warning", "error", "never")  # the strictest first


class Unread(Struct, frozen=True):
    """A file that holds no report, and why."""

    file: str
    why: str


def merged(reports: Sequence[Report], unread: Sequence[Unread] = ()) -> Report:
    """Return the report of the fleet. Of two reports about the same node the newer one counts."""
    newest = list(_newest(reports))
    nodes = _nodes(newest)
    together = _compared(nodes)
    runs = [
        _merged_run(runs_of, together.get(code), newest)
        for code, runs_of in _by_check(newest, together).items()
    ]
    gates = {report.verdict.fail_on for report in newest}
    fail_on: FailOn = next((gate for gate in _GATES if gate in gates), "error")
    silent = [node.host for node in nodes if node.status == "silent"]
    answer = verdict(runs, silent=silent, not_done=tuple(_not_done(newest, unread)), fail_on=fail_on)
    times = sorted(report.created for report in newest)
    return Report(
        schema_version=SCHEMA_VERSION,
        tool=this_tool(),
        command=COMMAND,
        created=times[-1] if times else "unknown",
        elapsed_s=max((report.elapsed_s for report in newest), default=0.0),
        verdict=replace(answer, fail_on=fail_on),
        nodes=nodes,
        checks=tuple(CheckEntry(run.code, run.slug, run.title, run.outcome, run.reason, 0.0) for run in runs),
        findings=tuple(sorted((finding for run in runs for finding in run.findings), key=_rank)),
        probes=tuple(probe for report in newest for probe in report.probes),
        nccl=tuple(entry for report in newest for entry in report.nccl),
        advice=Advice(),
        coverage=NOT_ONE_JOB,
        fleet=Fleet(len(newest), times[0] if times else "", times[-1] if times else "", _table(newest, runs)),
    )


def _rank(finding: Finding) -> tuple[int, str, tuple[str, ...], str]:
    return SEVERITIES.index(finding.severity), finding.code, finding.hosts, finding.summary


def _newest(reports: Sequence[Report]) -> Iterator[Report]:
    """Yield the reports in the order of their nodes, without those of which every node has a newer one."""
    covered_hosts: set[str] = set()
    newest = []
    for report in sorted(reports, key=lambda report: report.created, reverse=True):
        hosts = {node.host for node in report.nodes}
        if not hosts or not hosts <= covered_hosts:
            newest.append(report)
        covered_hosts |= hosts
    yield from sorted(newest, key=lambda report: [node.host for node in report.nodes])


def _nodes(reports: Sequence[Report]) -> tuple[NodeEntry, ...]:
    """Return every node once, ranked by name; one that reported anywhere is not silent."""
    found: dict[str, NodeEntry] = {}
    for report in sorted(reports, key=lambda report: report.created):
        for node in report.nodes:
            if node.status == "reported" or node.host not in found:
                found[node.host] = node
    return tuple(replace(found[host], node_rank=rank) for rank, host in enumerate(sorted(found)))


def _compared(nodes: Sequence[NodeEntry]) -> dict[str, CheckRun]:
    """Return what the checks that compare nodes say of them all, by code."""
    snapshot = Snapshot(
        nodes=tuple(
            Node(node.host, node.node_rank, replace(node.facts, launch=NOT_ONE_JOB, master=NOT_ONE_JOB))
            for node in nodes
            if node.facts is not UNSET
        ),
        probes=NOT_ONE_JOB,
        coverage=NOT_ONE_JOB,
    )
    if len(snapshot.nodes) < 2:  # noqa: PLR2004
        return {}
    return {
        check.code: run_check(check, snapshot)
        for check in all_checks()
        if check.code.startswith(_FAMILIES) and check.slug not in _TOGETHER and check.image != "only"
    }


def _by_check(
    reports: Sequence[Report], together: Mapping[str, CheckRun]
) -> dict[str, list[tuple[Report, CheckEntry]]]:
    """Return each check with the reports that have it, by code."""
    found: dict[str, list[tuple[Report, CheckEntry]]] = {code: [] for code in together}
    for report in reports:
        for entry in report.checks:
            found.setdefault(entry.code, []).append((report, entry))
    return {code: found[code] for code in sorted(found) if found[code]}


def _merged_run(
    entries: Sequence[tuple[Report, CheckEntry]], compared: CheckRun | None, reports: Sequence[Report]
) -> CheckRun:
    """Return one check of the fleet: what the files say of it, and what comparing the nodes adds."""
    entry = entries[0][1]
    findings = [finding for report in reports for finding in report.findings if finding.code == entry.code]
    ignoring = {
        node.host
        for report, entry_of_report in entries
        if entry_of_report.outcome == "ignored"
        for node in report.nodes
    }
    added = [
        _as_counted(finding, findings)
        for finding in (compared.findings if compared is not None else ())
        if not finding.hosts or not set(finding.hosts) <= ignoring
    ]
    findings = [finding for finding in findings if not any(_covers(wide, finding) for wide in added)] + added
    outcomes = {entry_of_report.outcome for _, entry_of_report in entries}
    if compared is not None and outcomes == {"not_applicable"}:
        outcomes = {compared.outcome}
        reason = compared.reason
    else:
        reason = _reasons(entries)
    outcome: Outcome = next(outcome for outcome in _WORST_FIRST if outcome in outcomes)
    if findings and outcome != "crashed":
        outcome = "found"
    elif outcome == "found":  # of which only the outcome was saved
        outcome = "passed"
    return CheckRun(entry.code, entry.slug, entry.title, outcome, reason, findings=tuple(findings))


def _as_counted(finding: Finding, counted: Sequence[Finding]) -> Finding:
    """Return the finding with the severity that the files give it, where they all have it: it may be demoted there."""
    counted_here = [own_finding for own_finding in counted if set(own_finding.hosts) & set(finding.hosts)]
    if not counted_here or not set(finding.hosts) <= {
        host for own_finding in counted_here for host in own_finding.hosts
    }:
        return finding
    return replace(
        finding, severity=min((own_finding.severity for own_finding in counted_here), key=SEVERITIES.index)
    )


def _covers(wide: Finding, finding: Finding) -> bool:
    """Return whether `wide` says all that `finding` does, of the same hosts and perhaps of more."""
    seen = {(evidence.subject, evidence.observed) for evidence in wide.evidence}
    observations = {(evidence.subject, evidence.observed) for evidence in finding.evidence}
    return bool(finding.hosts) and set(finding.hosts) <= set(wide.hosts) and observations <= seen


def _reasons(entries: Iterable[tuple[Report, CheckEntry]]) -> str:
    """Return why the check could not tell, on which nodes: "node01,node02: why; node03: why"."""
    hosts_of: dict[str, list[str]] = {}
    for report, entry in entries:
        if entry.outcome not in ("unknown", "crashed") and not (entry.outcome == "found" and entry.reason):
            continue
        hosts = [node.host for node in report.nodes]
        for part in entry.reason.split("; "):
            if len(hosts) != 1 or f" of {hosts[0]}: " in part:  # the part names its host itself
                hosts_of.setdefault(part, [])
            else:
                hosts_of.setdefault(part.removeprefix(f"{hosts[0]}: "), []).extend(hosts)
    return "; ".join(f"{','.join(hosts)}: {words}" if hosts else words for words, hosts in hosts_of.items())


def _not_done(reports: Sequence[Report], unread: Sequence[Unread]) -> Iterator[str]:
    """Yield which reports tell nothing of their nodes, by reason."""
    hosts_of: dict[str, list[str]] = {}
    for report in reports:
        if report.verdict.exit_code in _TELLS_NOTHING:
            hosts = [node.host for node in report.nodes] or ["a report without nodes"]
            for reason in report.verdict.reasons:
                hosts_of.setdefault(_without_host(reason, hosts), []).extend(hosts)
    for words, named in hosts_of.items():
        yield f"the report of {fold_hosts(named)} is inconclusive: {words}"
    if unread:
        first = f"{unread[0].file}: {unread[0].why}"
        more = f", and {plural(len(unread) - 1, 'file')} more" if len(unread) > 1 else ""
        yield f"no report in {first}{more}"
    if not reports:
        yield "there is no report"


def _without_host(reason: str, hosts: Sequence[str]) -> str:
    return reason.replace(f" of {hosts[0]} ", " ") if len(hosts) == 1 else reason


def _table(reports: Sequence[Report], runs: Sequence[CheckRun]) -> tuple[FleetCheck, ...]:
    """Return how many nodes have which outcome, for each check, and which nodes are not fine."""
    outcomes: dict[str, Counter[Outcome]] = {run.code: Counter() for run in runs}
    unknown: dict[str, list[str]] = {run.code: [] for run in runs}
    for report in reports:
        hosts = [node.host for node in report.nodes]
        for entry in report.checks:
            outcomes[entry.code][entry.outcome] += len(hosts)
            if entry.outcome in ("unknown", "crashed"):
                unknown[entry.code] += hosts
    return tuple(
        FleetCheck(
            code=run.code,
            slug=run.slug,
            passed=outcomes[run.code]["passed"],
            found=len(_hosts_found(run)),
            unknown=len(set(unknown[run.code])),
            not_applicable=outcomes[run.code]["not_applicable"],
            ignored=outcomes[run.code]["ignored"],
            found_on=_hosts_found(run),
            unknown_on=tuple(sorted(set(unknown[run.code]))),
        )
        for run in runs
    )


def _hosts_found(run: CheckRun) -> tuple[str, ...]:
    return tuple(sorted({host for finding in run.findings for host in finding.hosts}))
