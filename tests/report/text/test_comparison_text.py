"""As-is and advised stand side by side, with the effect and its interval, or what failed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench import Comparison, Variant
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.comparison_text import comparison_lines
from ncclcheck.report.text.page import draw
from tests.builders import cluster
from tests.report.reports import report

AS_IS = Variant({}, {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}, (80e3,) * 8, 0.0131)
ADVISED = Variant(
    {host: {"NCCL_SOCKET_IFNAME": "eth1"} for host in ("node01", "node02")},
    {"node01": ("eth1", "10.0.1.1"), "node02": ("lan7", "10.0.1.2")},
    (8e3,) * 8,
    0.131,
)
FASTER = Comparison("gloo", "all_reduce", 1 << 20, 2, 8, AS_IS, ADVISED, 10.0, 9.5, 10.4, "faster")


def shown(snapshot: Snapshot) -> list[str]:
    return draw(comparison_lines(report(snapshot=snapshot)), width=None, color=False).splitlines()


def test_both_stand_side_by_side_with_the_effect_and_its_interval() -> None:
    assert shown(replace(cluster(2), comparison=FASTER)) == [
        "as-is and advised, in turns, all_reduce 1M, 2 ranks, gloo, 8 rounds",
        "                as-is    advised",
        "  interface      eth0  eth1/lan7",
        "  time (us)     80000       8000",
        "  busbw (GB/s)  0.013      0.131",
        "  advised is faster: 10.00 times as fast (95 % interval 9.50 to 10.40)",
    ]


def test_no_effect_is_said_when_there_is_none() -> None:
    none = replace(FASTER, speedup=1.01, speedup_low=0.97, speedup_high=1.05, verdict="no effect")
    assert (
        shown(replace(cluster(2), comparison=none))[-1]
        == "  no effect: 1.01 times as fast (95 % interval 0.970 to 1.05)"
    )


def test_a_failure_says_who_was_where() -> None:
    why = "rank 0 on node01, rank 1 on node02: stuck in joining the group after 8 s: nothing is acknowledged"
    failed = replace(AS_IS, times_us=(), busbw_gb_s=None, failure=why)
    comparison = replace(
        FASTER,
        as_is=failed,
        speedup=None,
        speedup_low=None,
        speedup_high=None,
        verdict="as-is failed",
        rounds=6,
    )
    lines = shown(replace(cluster(2), comparison=comparison))
    assert lines[3].split() == ["time", "(us)", "failed", "8000"]
    assert lines[4].split() == ["busbw", "(GB/s)", "-", "0.131"]
    assert lines[5:] == [f"  as-is: {why}", "  as-is failed, advised works"]


def test_a_side_without_any_place_has_none() -> None:
    nothing = replace(AS_IS, places={}, times_us=(), busbw_gb_s=None, failure="node01: no interface")
    comparison = replace(FASTER, as_is=nothing, verdict="as-is failed", speedup=None)
    assert shown(replace(cluster(2), comparison=comparison))[2].split() == ["interface", "none", "eth1/lan7"]


def test_where_nothing_was_compared_nothing_is_shown_and_a_note_says_why_if_it_was_to_be() -> None:
    assert shown(cluster(2)) == []
    late = report(snapshot=replace(cluster(2), comparison=Missing("timeout", "9 s were left of --timeout")))
    assert late.comparison is None
    assert late.advice.notes[-1] == "as-is and advised were not compared: 9 s were left of --timeout"
    nothing = report(snapshot=replace(cluster(2), comparison=Missing("absent", "nothing is advised")))
    assert not any("compared" in note for note in nothing.advice.notes)
