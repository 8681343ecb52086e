"""Reports and check runs to render, made by the real builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncclcheck.model.finding import CheckRun, Evidence, Finding, Fix, Outcome, Severity
from ncclcheck.model.report import Advice, Report, Setting
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.build import build_report
from tests.builders import cluster

ADVICE = Advice(
    (
        Setting(
            "NCCL_SOCKET_IFNAME",
            "=eth0",
            (),
            "all nodes reach each other there",
            "asked",
            "4 of 4 bound eth0",
        ),
        Setting("NCCL_IB_HCA", None, ("node02",), "it names nothing there", "rule", ""),
    ),
    ("no effect was measured",),
)


def finding(
    slug: str, *hosts: str, severity: Severity = "error", code: str = "NC213", **parts: Any
) -> Finding:
    """A finding as the registry hands it on."""
    return Finding(severity, parts.pop("summary", f"{slug} is wrong"), hosts, code=code, slug=slug, **parts)


def check_run(slug: str, outcome: Outcome = "passed", reason: str = "", *, code: str = "NC213") -> CheckRun:
    """A check that found nothing."""
    return CheckRun(code, slug, f"the title of {slug}", outcome, reason)


def found(*findings: Finding) -> CheckRun:
    """The run of the check that found these."""
    first = findings[0]
    return CheckRun(first.code, first.slug, f"the title of {first.slug}", "found", findings=findings)


def mtu_finding() -> Finding:
    """A finding with evidence on two hosts and a fix with all its parts."""
    return finding(
        "mtu-differs",
        "node02",
        "node03",
        summary="2 different MTUs on eth0, so the first large all-reduce hangs",
        evidence=tuple(
            Evidence((host,), "MTU of eth0", "1500", "9000", "/sys/class/net/eth0/mtu")
            for host in ("node02", "node03")
        ),
        fixes=(
            Fix(
                "set one MTU", ("ip link set dev eth0 mtu 9000",), {"NCCL_SOCKET_IFNAME": "=eth0"}, "cuts ssh"
            ),
        ),
    )


def report(
    runs: Sequence[CheckRun] | None = None, snapshot: Snapshot | None = None, **options: Any
) -> Report:
    """The report of a healthy cluster of four, except for what is given."""
    given: dict[str, Any] = {
        "command": "preflight",
        "created": "2026-11-21T12:00:00+00:00",
        "elapsed_s": 3.14159,
        "fail_on": "error",
        "require": (),
        "interrupted": False,
    }
    checks = [check_run("node-silent", code="NC101")] if runs is None else runs
    advice = options.pop("advice", Advice())
    return build_report(snapshot or cluster(4), checks, advice, **{**given, **options})
