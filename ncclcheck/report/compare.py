"""What changed from one report to another, and what of it is worse.

Findings are matched by check and host, never by their words, which differ with every number in them. A finding whose
check can no longer tell is not gone, and a bandwidth is only lower where chance does not explain it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.baseline import Compared, baseline_point
from ncclcheck.measure.baseline import compare as compare_points
from ncclcheck.model.bench import Backend
from ncclcheck.model.finding import SEVERITIES, Severity
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import BenchReport, Report, Status
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.compare_values import ValueChange, value_changes
from ncclcheck.report.gate import is_counted
from ncclcheck.report.text.fold import fold_hosts

_TOLD = ("passed", "found")
_RANK: dict[Status, int] = {"pass": 0, "unknown": 1, "fail": 2, "error": 2}
NOT_LISTED = "not in the list"
Fate: TypeAlias = Literal["gained", "worse", "milder", "gone", "not known any more"]


class Side(Struct, frozen=True):
    """One of the two reports."""

    created: str
    version: str
    command: str
    status: Status
    exit_code: int
    nodes: int


class FindingChange(Struct, frozen=True):
    """A finding of one check on some hosts. `summary` is the present one, or the last one; `why` adds what matters."""

    fate: Fate
    severity: Severity
    code: str
    slug: str
    hosts: tuple[str, ...]
    summary: str
    why: str = ""


class CheckChange(Struct, frozen=True):
    """A check that could tell in one of the reports only. `counts`: it is worse, since nobody chose it."""

    code: str
    slug: str
    before: str
    after: str
    reason: str
    counts: bool


class PointChange(Struct, frozen=True):
    """One point in both reports. `lost` and `noise` are parts of the bandwidth: what is gone, what chance explains."""

    op: str
    size_bytes: int
    dtype: str
    before_gb_s: float
    after_gb_s: float
    verdict: str
    lost: float
    noise: float
    why: str = ""


class Changes(Struct, frozen=True):
    """All of it. `different_jobs` says why the two are not of the same job; `regressions` what is worse, in words."""

    old: Side
    new: Side
    different_jobs: tuple[str, ...]
    regressions: tuple[str, ...]
    findings: tuple[FindingChange, ...]
    findings_kept: int
    checks: tuple[CheckChange, ...]
    values: tuple[ValueChange, ...]
    bandwidth: tuple[PointChange, ...]
    bandwidth_note: str
    nodes_gained: tuple[str, ...]
    nodes_lost: tuple[str, ...]
    silent_now: tuple[str, ...]


def changes(old: Report, new: Report, tolerance: float) -> Changes:
    """Compare two reports. `tolerance` is the share of a bandwidth that may be lost before it counts."""
    findings, unchanged = _findings(old, new)
    checks = tuple(_checks(old, new))
    points, note, missing = _bandwidth(old.bench, new.bench, tolerance)
    before, after = _hosts(old, "reported"), _hosts(new, "reported")
    silent = tuple(sorted(_silent_now(old, new)))
    blamed_hosts = {host for finding in findings if _is_worse(finding) for host in finding.hosts}
    unknown = sorted(set(silent) - blamed_hosts)
    worse = [
        *_worse_verdict(old, new),
        *(_finding_words(finding) for finding in findings if _is_worse(finding)),
        *(
            f"{check.slug} could tell before and cannot now: {check.reason or check.after}"
            for check in checks
            if check.counts
        ),
        *(_point_words(point) for point in points if point.verdict == "loss"),
        *missing,
        *_lost_bench(old, new),
        *([f"{plural(len(unknown), 'node')} did not report now: {fold_hosts(unknown)}"] if unknown else []),
    ]
    return Changes(
        old=_side(old),
        new=_side(new),
        different_jobs=tuple(_different_jobs(old, new)),
        regressions=tuple(worse),
        findings=findings,
        findings_kept=unchanged,
        checks=checks,
        values=tuple(value_changes(old, new)),
        bandwidth=points,
        bandwidth_note=note,
        nodes_gained=tuple(sorted(after - _hosts(old))),
        nodes_lost=tuple(sorted(before - _hosts(new))),
        silent_now=silent,
    )


def _side(report: Report) -> Side:
    verdict = report.verdict
    return Side(
        report.created,
        report.tool.version,
        report.command,
        verdict.status,
        verdict.exit_code,
        len(report.nodes),
    )


def _hosts(report: Report, status: str = "") -> set[str]:
    return {node.host for node in report.nodes if status in ("", node.status)}


def _worse_verdict(old: Report, new: Report) -> Iterator[str]:
    if _RANK[new.verdict.status] > _RANK[old.verdict.status] and not _only_new_checks(old, new):
        first = new.verdict.reasons[0] if new.verdict.reasons else "no reason was given"
        yield f"the verdict was {old.verdict.status} and is {new.verdict.status}: {first}"


def _only_new_checks(old: Report, new: Report) -> bool:
    """Return True if the gate counts only findings of checks that the old report does not have."""
    counted = [finding for finding in new.findings if is_counted(new, [finding])]
    return (
        new.verdict.status == "fail"
        and bool(counted)
        and all(_outcome(old, finding.slug) == NOT_LISTED for finding in counted)
    )


def _silent_now(old: Report, new: Report) -> set[str]:
    """Return the nodes that are silent now and were not; of a different set of nodes all, where they are more."""
    before, after = _hosts(old, "silent"), _hosts(new, "silent")
    if _other_nodes(old, new):
        return after if len(after) > len(before) else set()
    return after - before


def _other_nodes(old: Report, new: Report) -> bool:
    """Return True if both have nodes and share none: another part of the cluster, or new names."""
    before, after = _hosts(old), _hosts(new)
    return bool(before and after) and not before & after


def _different_jobs(old: Report, new: Report) -> Iterator[str]:
    if old.command != new.command:
        yield f"one is of {old.command}, the other of {new.command}"
    before, after = _hosts(old), _hosts(new)
    if _other_nodes(old, new):
        yield f"no node is in both: {fold_hosts(before)} and {fold_hosts(after)}"
    elif before != after:
        parts = [f"only before: {fold_hosts(before - after)}"] if before - after else []
        parts += [f"only now: {fold_hosts(after - before)}"] if after - before else []
        yield f"not the same nodes: {'; '.join(parts)}"
    if old.bench and new.bench:
        old_shape, new_shape = _bench_shape(old.bench), _bench_shape(new.bench)
        if old_shape != new_shape:
            yield f"not the same benchmark: {old_shape}, and {new_shape}"


def _bench_shape(bench: BenchReport) -> str:
    return f"{bench.backend} with {plural(bench.world_size, 'rank')} on {plural(bench.nodes, 'node')}"


# --- findings and checks -----------------------------------------------------------------------------------------


class _Seen(Struct, frozen=True):
    severity: Severity
    code: str
    summary: str
    hosts: tuple[str, ...]
    count: int = 1  # of this severity


def _seen(report: Report, *, by_host: bool) -> dict[tuple[str, str], _Seen]:
    """Of each check on each host the worst finding; a finding without hosts is of the host "", as are all else."""
    worst: dict[tuple[str, str], _Seen] = {}
    for finding in report.findings:
        for host in (finding.hosts if by_host else ()) or ("",):
            before = worst.get((finding.slug, host))
            if before is None or _milder(before.severity, finding.severity):
                worst[finding.slug, host] = _Seen(
                    finding.severity, finding.code, finding.summary, finding.hosts
                )
            elif before.severity == finding.severity:
                hosts = tuple(dict.fromkeys((*before.hosts, *finding.hosts)))
                worst[finding.slug, host] = replace(before, hosts=hosts, count=before.count + 1)
    return worst


def _milder(severity: Severity, than: Severity) -> bool:
    return SEVERITIES.index(severity) > SEVERITIES.index(than)


def _findings(old: Report, new: Report) -> tuple[tuple[FindingChange, ...], int]:
    by_host = not _other_nodes(old, new)  # of nodes with other names only checks can be compared
    before, after = _seen(old, by_host=by_host), _seen(new, by_host=by_host)
    groups: dict[tuple[Fate, str, Severity, str, str], list[str]] = {}
    unchanged = 0
    for (slug, host), finding in (before | after).items():
        fate, why = _fate(old, new, before.get((slug, host)), after.get((slug, host)), slug, host)
        if fate is None:
            unchanged += 1
            continue
        shown = after.get((slug, host), finding)
        groups.setdefault((fate, slug, shown.severity, shown.code, why), []).append(host)
    found = []
    for (fate, slug, severity, code, why), unsorted in groups.items():
        hosts = sorted(unsorted)
        shown = after.get((slug, hosts[0])) or before[slug, hosts[0]]
        named = tuple(host for host in hosts if host) or shown.hosts
        found.append(FindingChange(fate, severity, code, slug, named, shown.summary, why))
    order = ("gained", "worse", "milder", "gone", "not known any more")
    found.sort(
        key=lambda change: (
            order.index(change.fate),
            SEVERITIES.index(change.severity),
            change.code,
            change.slug,
            change.hosts,
        )
    )
    return tuple(found), unchanged


def _fate(
    old: Report, new: Report, before: _Seen | None, after: _Seen | None, slug: str, host: str
) -> tuple[Fate | None, str]:
    """Return what became of a finding and what to say of it; no fate means that it is unchanged."""
    if before is None:
        was = _outcome(old, slug)
        if was in _TOLD and host and old.nodes and host not in _hosts(old):
            return "gained", "the node is not in the old report"
        return "gained", "" if was in _TOLD else f"before: {was.replace('_', ' ')}"
    if after is None:
        now = _outcome(new, slug)
        if now not in _TOLD and (_outcome(old, slug) in _TOLD or now != NOT_LISTED):
            return "not known any more", f"now: {now.replace('_', ' ')}"
        if host and new.nodes and host not in _hosts(new, "reported"):
            return "not known any more", "the node is not in the new report"
        return "gone", ""
    if before.severity == after.severity:
        if host and after.count > before.count:
            return "worse", f"{after.count} findings of it, before {before.count}"
        return None, ""
    return ("milder" if _milder(after.severity, before.severity) else "worse"), f"it was: {before.severity}"


def _outcome(report: Report, slug: str) -> str:
    outcomes = [entry.outcome for entry in report.checks if entry.slug == slug]
    return outcomes[0] if outcomes else NOT_LISTED


def _is_worse(change: FindingChange) -> bool:
    """Return True if it got worse. A new check of a newer version may find an old problem: news, but no regression."""
    is_new_check = change.fate == "gained" and change.why == f"before: {NOT_LISTED}"
    return change.fate in ("gained", "worse") and change.severity != "info" and not is_new_check


def _finding_words(change: FindingChange) -> str:
    where = f" on {fold_hosts(change.hosts)}" if change.hosts else ""
    why = f" ({change.why})" if change.why else ""
    return f"{change.severity} {change.fate}: {change.slug}{where}{why}"


def _checks(old: Report, new: Report) -> Iterator[CheckChange]:
    before = {(entry.code, entry.slug): entry for entry in old.checks}
    after = {(entry.code, entry.slug): entry for entry in new.checks}
    for key in dict.fromkeys([*before, *after]):
        was = before[key].outcome if key in before else NOT_LISTED
        now = after[key].outcome if key in after else NOT_LISTED
        if (was in _TOLD) is (now in _TOLD) and now != "crashed":
            continue
        reason = after[key].reason if key in after else ""
        counts = now in ("unknown", "crashed") and was in _TOLD
        if was != now:
            yield CheckChange(*key, before=was, after=now, reason=reason, counts=counts)


# --- bandwidth ---------------------------------------------------------------------------------------------------


def _bandwidth(
    old: BenchReport | None, new: BenchReport | None, tolerance: float
) -> tuple[tuple[PointChange, ...], str, list[str]]:
    """Return the points that both have, why the rest cannot be compared, and what was not measured again."""
    if old is None or new is None:
        if old is new:
            return (), "", []
        return (), f"only {'the old' if new is None else 'the new'} report has a benchmark", []
    if _bench_shape(old) != _bench_shape(new):
        return (), "the bandwidths are not compared: the benchmarks are not the same", []
    known = {(point.op, point.size_bytes, point.dtype): point for point in old.points}
    pairs = [
        (point, replace(baseline_point(known[key]), samples_us=()))  # reports are compared by their summaries
        for point in new.points
        if (key := (point.op, point.size_bytes, point.dtype)) in known
    ]
    measured = {(point.op, point.size_bytes, point.dtype) for point in new.points}
    missing = [
        f"{op} {format_size(size)} was planned and is not measured any more"
        for op, size, dtype in known
        if (op, size, dtype) not in measured
        and op in new.plan.ops
        and size in new.plan.sizes_bytes
        and dtype == new.plan.dtype
    ]
    backend: Backend = "nccl" if new.backend == "nccl" else "gloo"
    note = "" if pairs else "no point is in both benchmarks"
    return (
        tuple(_point_change(compare_point) for compare_point in compare_points(pairs, tolerance, backend)),
        note,
        missing,
    )


def _lost_bench(old: Report, new: Report) -> Iterator[str]:
    """Yield what the same command measured before and did not measure now."""
    if old.command == new.command and old.bench is not None and old.bench.points and new.bench is None:
        yield "there was a benchmark and there is none now"


def _point_change(compared: Compared) -> PointChange:
    return PointChange(
        op=compared.now.op,
        size_bytes=compared.now.size_bytes,
        dtype=compared.now.dtype,
        before_gb_s=compared.before.busbw_gb_s,
        after_gb_s=compared.now.busbw_gb_s,
        verdict=compared.verdict,
        lost=compared.lost,
        noise=compared.noise,
        why=compared.why,
    )


def _point_words(change: PointChange) -> str:
    size = format_size(change.size_bytes)
    return (
        f"{change.op} {size} lost {change.lost:.0%}: {format_number(change.before_gb_s)} GB/s before, "
        f"{format_number(change.after_gb_s)} now; noise explains at most {change.noise:.1%}"
    )
