"""Findings for people."""

from __future__ import annotations

from ncclcheck.model.finding import Evidence
from ncclcheck.report.text.findings_text import finding_lines
from ncclcheck.report.text.page import draw
from tests.report.reports import finding, found, mtu_finding, report


def shown(*runs_findings: object, verbose: int = 0) -> str:
    made = report([found(runs_finding) for runs_finding in runs_findings])  # type: ignore[arg-type]
    return draw(finding_lines(made, verbose), width=None, color=False)


def test_a_finding_says_what_where_and_what_to_do() -> None:
    assert shown(mtu_finding()).splitlines() == [
        "error  NC213 mtu-differs  on node[02-03]",
        "  2 different MTUs on eth0, so the first large all-reduce hangs",
        "    seen: MTU of eth0: 1500 on node[02-03], expected 9000 (from /sys/class/net/eth0/mtu)",
        "    fix: set one MTU",
        "        ip link set dev eth0 mtu 9000",
        "        export NCCL_SOCKET_IFNAME='=eth0'",
        "        risk: cuts ssh",
    ]


def test_worst_comes_first() -> None:
    text = shown(
        finding("a-hint", "node01", severity="info", code="NC201"),
        finding("a-warning", "node01", severity="warning", code="NC202"),
        finding("an-error", "node01", code="NC203"),
    )
    assert text.index("an-error") < text.index("a-warning") < text.index("a-hint")


def test_findings_that_differ_only_in_their_hosts_are_one() -> None:
    text = shown(*(finding("shm-small", f"node{number:02}", summary="too small") for number in range(1, 5)))
    assert text.splitlines() == ["error  NC213 shm-small  on node[01-04]", "  too small"]


def test_much_evidence_is_cut_and_says_so() -> None:
    many = finding(
        "env-differs",
        "node01",
        evidence=tuple(Evidence(("node01",), f"VARIABLE_{number}", "a", "b", "env") for number in range(10)),
    )
    assert "and 4 more like these: -v shows all" in shown(many)
    assert "VARIABLE_9" in shown(many, verbose=1)
