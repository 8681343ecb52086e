"""The report as Markdown."""

from __future__ import annotations

from ncclcheck.report.markdown.markdown import to_markdown
from tests.report.reports import ADVICE, check_run, found, mtu_finding, report
from tests.report.samples import full_report


def test_a_finding_comes_with_evidence_and_fix() -> None:
    text = to_markdown(report([found(mtu_finding()), check_run("x", "unknown", "why")], advice=ADVICE))
    assert text.startswith("# ❌ ncclcheck preflight: fail\n\n**exit code 1**: 1 error: mtu-differs on ")
    assert "### 🔴 error: NC213 mtu-differs on `node[02-03]`" in text
    assert "| `node[02-03]` | MTU of eth0 | 1500 | 9000 | `/sys/class/net/eth0/mtu` |" in text
    assert "```sh\nip link set dev eth0 mtu 9000\nexport NCCL_SOCKET_IFNAME='=eth0'\n```" in text
    assert "## 1 unknown check" in text
    assert "| unknown | `NC213` | x | why |" in text
    assert "unset NCCL_IB_HCA" in text


def test_measurements_are_tables() -> None:
    text = to_markdown(full_report(8))
    assert "| all_reduce | 1M | float32 | 20 |" in text
    assert "| all_reduce | 390.0 | 95% | 8 cards of 400 Gbit/s each |" in text
    assert "advised is faster" in text
    assert "- failed: rank 1 on node01 died in all_gather 512M, iteration 3" in text


def test_a_healthy_report_is_short() -> None:
    text = to_markdown(report())
    assert "finding" not in text
    assert "unknown check" not in text
    assert text.startswith("# ✅ ")
