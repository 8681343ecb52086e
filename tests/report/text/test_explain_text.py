"""What `explain` prints: the cause first, what was used, and the exit code last."""

from __future__ import annotations

from ncclcheck.report.text.terminal import render
from tests.report.test_explain import report_on

TEXT = """
a:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
a:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0
[rank3]: ValueError: the cause
"""


def printed(verbose: int = 0) -> list[str]:
    return render(report_on(TEXT), verbose=verbose).splitlines()


def test_the_page() -> None:
    lines = printed()
    assert lines[0].startswith("ncclcheck ")
    assert "1 file, 3 lines" in lines[0]
    assert any("rank-exception" in line for line in lines)
    assert "  interface: eth0" in lines
    assert lines[-1] == "exit 1: the cause: rank-exception"


def test_normal_lines_only_with_v() -> None:
    assert not any("NVLink SHARP" in line for line in printed())
    assert any("NVLink SHARP" in line for line in printed(verbose=1))
