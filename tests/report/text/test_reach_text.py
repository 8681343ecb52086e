"""Which pairs were tried, and what failed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Probe
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.reach_text import reach_lines
from tests.report.reports import report


def test_attempts_that_failed_are_counted_by_kind() -> None:
    failed = [
        Probe("tcp", "a", "b", "eth0", "10.0.0.1", 1, "filtered"),
        Probe("tcp", "b", "a", "eth0", "10.0.0.2", 1, "filtered"),
        Probe("mtu", "b", "a", "eth0", "10.0.0.2", 1, "stalled"),
        Probe("tcp", "b", "c", "eth0", "10.0.0.3", 1, "ok"),
    ]
    text = draw_plain(reach_lines(replace(report(), probes=tuple(failed))))
    assert text.endswith("attempts that failed: 1 x mtu stalled, 2 x tcp filtered\n")
