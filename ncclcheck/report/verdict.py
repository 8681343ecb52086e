"""The exit code and its reasons: one pure function over everything that can spoil a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ncclcheck.model.exit_code import BENCH, BUG, FIRST_WINS, FOUND, INTERRUPTED, PASS, UNKNOWN
from ncclcheck.model.finding import SEVERITIES, CheckRun, Finding
from ncclcheck.model.formats.choices import FailOn
from ncclcheck.model.formats.prose import listed, plural
from ncclcheck.model.report import STATUS_OF, Verdict
from ncclcheck.report.text.fold import fold_hosts

_BENCH_CODES = "NC8"
_WITHOUT_TRAFFIC = ("NC830", "NC831")  # arithmetic on the sizes of --mesh
_RAN = ("passed", "found")
_MOST_NAMED = 4


def verdict(
    runs: Sequence[CheckRun],
    *,
    silent: Sequence[str] = (),
    required: Collection[str] = (),
    not_done: Sequence[str] = (),
    fail_on: FailOn = "error",
    interrupted: bool = False,
    bug: str | None = None,
) -> Verdict:
    """Return the exit code (the first of 70, 130, 1, 4, 3, else 0) and all reasons, the deciding ones first.

    `silent` are hosts that did not report, `required` the codes of checks that must have run, `not_done` sentences
    about other things that had to happen and did not. A finding of the benchmark (NC8) at the gate gives 4, any
    other 1, also what preflight says of parallel groups without any traffic; a check that passed or found something
    has run, every other outcome has not.
    """
    reasons: list[tuple[int, str]] = []
    if bug is not None:
        reasons.append((BUG, f"a bug in ncclcheck: {bug}"))
    if interrupted:
        reasons.append((INTERRUPTED, "interrupted: the report is partial"))
    reasons += _gate(runs, fail_on)
    reasons += [(UNKNOWN, reason) for reason in (*_silence(silent), *_undone(runs, required), *not_done)]
    if not reasons:
        return Verdict("pass", PASS, (_nothing_found(runs, fail_on),))
    reasons.sort(key=lambda reason: FIRST_WINS.index(reason[0]))
    code = reasons[0][0]
    return Verdict(STATUS_OF[code], code, tuple(text for _, text in reasons))


def _gate(runs: Sequence[CheckRun], fail_on: FailOn) -> Iterable[tuple[int, str]]:
    if fail_on == "never":
        return
    counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    found = [finding for run in runs for finding in run.findings if finding.severity in counted]
    for code, of_bench, subject in ((FOUND, False, ""), (BENCH, True, "the benchmark: ")):
        here = [finding for finding in found if _is_of_bench(finding) is of_bench]
        if here:
            yield code, f"{subject}{_counted(here)}: {_named(here)}"


def _is_of_bench(finding: Finding) -> bool:
    return finding.code.startswith(_BENCH_CODES) and finding.code not in _WITHOUT_TRAFFIC


def _counted(findings: Sequence[Finding]) -> str:
    counts = [
        (sum(finding.severity == severity for finding in findings), severity) for severity in SEVERITIES
    ]
    return " and ".join(plural(count, severity) for count, severity in counts if count)


def _named(findings: Sequence[Finding]) -> str:
    hosts_of: dict[str, list[str]] = {}
    for finding in sorted(findings, key=lambda found: SEVERITIES.index(found.severity)):
        hosts_of.setdefault(finding.slug, []).extend(finding.hosts)
    names = [f"{slug} on {fold_hosts(hosts)}" if hosts else slug for slug, hosts in hosts_of.items()]
    return listed(names, _MOST_NAMED, last=", ")


def _silence(silent: Sequence[str]) -> Iterable[str]:
    if silent:
        yield f"{plural(len(silent), 'node')} did not report: {fold_hosts(silent)}"


def _undone(runs: Sequence[CheckRun], required: Collection[str]) -> Iterable[str]:
    for run in runs:
        if run.outcome == "crashed":
            yield f"the check {run.slug} crashed, which is a bug in ncclcheck: {run.reason}"
        elif run.code in required and run.outcome not in _RAN:
            why = f": {run.reason}" if run.reason else ""
            yield f"the required check {run.slug} did not run ({run.outcome.replace('_', ' ')}{why})"
    for code in sorted(set(required) - {run.code for run in runs}):
        yield f"the required check {code} did not run"
    if not any(run.outcome in _RAN for run in runs):
        yield "no check could run"


def _nothing_found(runs: Sequence[CheckRun], fail_on: FailOn) -> str:
    passed = plural(sum(run.outcome == "passed" for run in runs), "check")
    unknown = sum(run.outcome == "unknown" for run in runs)
    rest = f", {unknown} unknown" if unknown else ""
    gate = {
        "error": "no errors",
        "warning": "no errors or warnings",
        "never": "findings do not count (--fail-on never)",
    }
    return f"{gate[fail_on]}: {passed} passed{rest}"
