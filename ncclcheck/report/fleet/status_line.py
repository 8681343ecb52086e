"""The report as one line, and its exit code, as monitoring systems read them: node-problem-detector and Nagios.

Sources: node-problem-detector docs/custom_plugin_monitor.md (exit 0 OK, 1 not OK, anything else unknown; the first 80
bytes of standard output are the message); Monitoring Plugins Development Guidelines (0 OK, 1 WARNING, 2 CRITICAL, 3
UNKNOWN; performance data after a bar).
"""

from __future__ import annotations

from collections import Counter

from ncclcheck.model.finding import SEVERITIES
from ncclcheck.model.formats.choices import Protocol
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.report.text.plain import plain

MOST_BYTES = 80
UNKNOWN: dict[Protocol, int] = {"npd": 2, "nagios": 3}
_PASS, _FOUND = 0, (1, 4)  # ours
_NPD_PROBLEM = 1
_WARNING, _CRITICAL = 1, 2
_NAGIOS_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def status_code(report: Report, protocol: Protocol) -> int:
    """Return the exit code that the protocol has for this report; what is neither good nor bad is its unknown."""
    exit_code = report.verdict.exit_code
    if exit_code in _FOUND:
        return _NPD_PROBLEM if protocol == "npd" else _CRITICAL
    if exit_code != _PASS:
        return UNKNOWN[protocol]
    warned = any(finding.severity != "info" for finding in report.findings)
    return _WARNING if protocol == "nagios" and warned else _PASS


def status_line(report: Report, protocol: Protocol) -> str:
    """Return the line, at most 80 bytes and a new line: the worst finding first; for Nagios with performance data."""
    words, code = _words(report), status_code(report, protocol)
    if protocol == "npd":
        return f"{_fitting(words, MOST_BYTES)}\n"
    counts = Counter(finding.severity for finding in report.findings)
    unknown = sum(entry.outcome in ("unknown", "crashed") for entry in report.checks)
    data = f"|errors={counts['error']} warnings={counts['warning']} unknown={unknown}"
    data += f" time={report.elapsed_s:.1f}s"
    return f"{_fitting(f'{_NAGIOS_WORDS[code]}: {words}', MOST_BYTES - len(data))}{data}\n"


def unknown_line(protocol: Protocol, why: str) -> str:
    """Return the line of a run that has no report."""
    words = why if protocol == "npd" else f"{_NAGIOS_WORDS[UNKNOWN[protocol]]}: {why}"
    return f"{_fitting(words, MOST_BYTES)}\n"


def _words(report: Report) -> str:
    """Return what matters most: the worst finding, else why the report is no pass, else what ran."""
    found = sorted(report.findings, key=lambda finding: SEVERITIES.index(finding.severity))
    found = [finding for finding in found if finding.severity != "info"]
    exit_code = report.verdict.exit_code
    if found and exit_code in (_PASS, *_FOUND):
        more = f" (+{len(found) - 1})" if len(found) > 1 else ""
        return f"{found[0].slug}{more}: {found[0].summary}"
    if exit_code != _PASS and report.verdict.reasons:
        return report.verdict.reasons[0]
    passed = sum(entry.outcome == "passed" for entry in report.checks)
    unknown = sum(entry.outcome == "unknown" for entry in report.checks)
    return f"{plural(passed, 'check')} passed" + (f", {unknown} unknown" if unknown else "")


def _fitting(text: str, most_bytes: int) -> str:
    """Return the text on one line without a bar, cut at a whole character."""
    harmless = " ".join(plain(text).replace("|", "/").split())
    data = harmless.encode("utf-8", "backslashreplace")
    if len(data) <= most_bytes:
        return harmless
    return data[: most_bytes - 3].decode("utf-8", "ignore").rstrip() + "..."
