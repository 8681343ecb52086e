"""Checks that found nothing, for people: what is unknown and why, and with -v what passed or did not apply."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import CheckEntry, Report
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line

_OF_HOST = re.compile(r"(?P<section>\w+ of )?(?P<hosts>\S+): (?P<why>.*)", re.DOTALL)
_MOST_PARTS = 4
_MOST_NAMED = 8  # checks that could not tell for one and the same reason
_LOST = re.compile(r"(node 0( \(.*\))? was lost|\S+ lost the folder of --meet-in) (while|during|after) .*")
_NOBODY = "no node reported"
# In the words of checks/hosts.py, checks/launch/_master.py, checks/registry.py and model/snapshot.py.
_EXPLAINED = (
    "did not report",
    "did not meet",
    "did not join",
    "was lost while the nodes joined",
    "was lost during",
    "was lost after",
    "lost the folder of --meet-in",
    "this node failed to reach node 0 at an earlier stage",
    "no probes were made",
)


def unknown_checks(report: Report) -> list[CheckEntry]:
    """Return the checks that crashed or are unknown, also in part."""
    return [
        entry
        for entry in report.checks
        if entry.outcome in ("crashed", "unknown") or (entry.outcome == "found" and entry.reason)
    ]


def unknown_lines(report: Report, verbose: int) -> Iterator[Line]:
    """Yield the checks that crashed or are unknown, by reason: they did not pass."""
    for entry in report.checks:
        if entry.outcome == "crashed":
            crashed = f"  {entry.code} {entry.slug}: a bug in ncclcheck, please report it: {entry.reason}"
            yield line(Span("crashed", "bold red"), crashed)
    hosts = {node.host for node in report.nodes}
    cause = "" if verbose else _common_cause(report)
    by_reason: dict[str, list[CheckEntry]] = {}
    told_by_cause = 0
    for entry in report.checks:
        own_reason = _own_reason(entry.reason) if cause else entry.reason
        if entry.outcome == "unknown" and cause and not own_reason:
            told_by_cause += 1
        elif entry.outcome == "unknown":
            by_reason.setdefault(fold_reason(own_reason, hosts, verbose), []).append(entry)
    if told_by_cause:
        could_not = f"  {cause}: {plural(told_by_cause, 'check')} unknown (-v lists them)"
        yield line(Span("unknown", "bold magenta"), could_not)
    for reason, entries in by_reason.items():
        could_not = f"  {_names(entries, verbose)}: {reason or 'no reason was given'}"
        yield line(Span("unknown", "bold magenta"), could_not)
    for entry in report.checks:
        own_reason = _own_reason(entry.reason) if cause else entry.reason
        if entry.outcome == "found" and own_reason:
            partly = f"  {entry.code} {entry.slug}, in part: {fold_reason(own_reason, hosts, verbose)}"
            yield line(Span("unknown", "bold magenta"), partly)


def _names(entries: Sequence[CheckEntry], verbose: int) -> str:
    names = [f"{entry.code} {entry.slug}" for entry in entries]
    if len(names) > _MOST_NAMED and not verbose:
        rest = len(names) - _MOST_NAMED
        names = [*names[:_MOST_NAMED], f"and {rest} more checks (-v lists them)"]
    return ", ".join(names)


def _common_cause(report: Report) -> str:
    """Return what keeps most checks unknown, said once instead of by each; empty if there is no such cause."""
    silent = [node.host for node in report.nodes if node.status == "silent"]
    if silent:
        return f"{fold_hosts(silent)} did not report"
    if any("did not meet" in entry.reason for entry in report.checks):
        return "the nodes did not meet"
    lost = (reason for reason in report.verdict.reasons if _LOST.fullmatch(reason))
    return next(lost, "")


def _own_reason(reason: str) -> str:
    """Return the reason without what the common cause or a finding above explains."""
    if _NOBODY in reason:
        return ""
    return "; ".join(part for part in reason.split("; ") if not any(word in part for word in _EXPLAINED))


def quiet_check_lines(report: Report, verbose: int) -> Iterator[Line]:
    """With -v: the checks that passed, did not apply or were ignored."""
    if not verbose:
        return
    for outcome in ("passed", "not_applicable", "ignored"):
        for entry in report.checks:
            if entry.outcome == outcome:
                why = f" ({entry.reason})" if entry.reason else ""
                yield line(f"{outcome.replace('_', ' ')}  {entry.code} {entry.slug}: {entry.title}{why}")


def fold_reason(reason: str, hosts: Collection[str], verbose: int = 0) -> str:
    """Fold a reason in parts, "interfaces of node01: why; node02: why": hosts of equal parts are folded."""
    hosts_of: dict[tuple[str, str], list[str]] = {}
    for part in reason.split("; "):
        match = _OF_HOST.fullmatch(part)
        known = match is not None and all(host in hosts for host in match["hosts"].split(","))
        key = (match["section"] or "", match["why"]) if match and known else ("", part)
        hosts_of.setdefault(key, []).extend(match["hosts"].split(",") if match and known else ())
    parts = [
        f"{section}{fold_hosts(these)}: {why}" if these else why for (section, why), these in hosts_of.items()
    ]
    if len(parts) > _MOST_PARTS and not verbose:
        parts = [*parts[:_MOST_PARTS], f"and {len(parts) - _MOST_PARTS} more: -v shows all"]
    return "; ".join(parts)
