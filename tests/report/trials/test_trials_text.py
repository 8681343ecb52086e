"""The table of the settings that were tried."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench import BenchResult
from ncclcheck.report.bench_report import bench_report
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.trials.trials_text import trial_lines
from tests.builders import cluster
from tests.report.reports import report
from tests.trial_builders import FAST, HANGS, SAME, TRADE, tried


def text(bench: BenchResult) -> str:
    snapshot = replace(cluster(2), bench=bench)
    return draw_plain(trial_lines(replace(report(), bench=bench_report(snapshot, bench))))


def test_each_arm_has_its_sizes_its_interval_and_what_became_of_it() -> None:
    shown = text(tried(SAME, FAST, TRADE, HANGS))
    row = next(
        row
        for row in shown.splitlines()
        if row.split()[:3] == ["GLOO_SOCKET_IFNAME=fast", "all_reduce", "1M"]
    )
    assert row.split()[-1] == "better"
    assert float(row.split()[3]) > 1.08
    assert "GLOO_SOCKET_IFNAME=fast: advised: faster at all_reduce 1M (+" in shown
    assert "GLOO_SOCKET_IFNAME=trade: refused: faster at" in shown
    assert "GLOO_SOCKET_IFNAME=hangs: failed: rank 1 on node02: hung" in shown
    assert "measured again, times as fast: all_reduce 1M 1." in shown
    assert "(used: interface fast)" in shown
    assert "beside the computing of a job another setting may win" in shown


def test_without_trials_there_is_nothing() -> None:
    assert text(replace(tried(SAME), trials=None, race=None)) == ""
    assert draw_plain(trial_lines(replace(report(), bench=None))) == ""
