"""What changed between two reports, and what of it is worse."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.codec import decode
from ncclcheck.model.finding import CheckRun
from ncclcheck.model.report import BenchReport, Report
from ncclcheck.report.compare import Changes, changes
from ncclcheck.report.document import to_json
from tests.builders import cluster, with_silent
from tests.report.reports import check_run, finding, found, report
from tests.report.samples import calm, full_report

HEALTHY = report([check_run("mtu-differs"), check_run("gpu-count", code="NC401")])


def compared(old: Report, new: Report) -> Changes:
    return changes(old, new, 0.05)


def of(*runs: CheckRun, **options: Any) -> Report:
    known = {run.slug for run in runs}
    others = [
        run
        for run in (check_run("mtu-differs"), check_run("gpu-count", code="NC401"))
        if run.slug not in known
    ]
    return report([*runs, *others], **options)


def test_a_report_is_like_itself() -> None:
    made = replace(of(found(finding("mtu-differs", "node02"))), bench=calm(2))
    found_ = compared(made, made)
    assert (found_.regressions, found_.findings, found_.checks, found_.values, found_.different_jobs) == (
        (),
    ) * 5
    assert found_.findings_kept == 1
    assert {point.verdict for point in found_.bandwidth} == {"same"}


def test_findings_are_matched_by_check_and_host_not_by_their_words() -> None:
    old = of(found(finding("mtu-differs", "node02", "node03", summary="1500 on 2 nodes")))
    new = of(found(finding("mtu-differs", "node03", "node04", summary="1400 on 2 nodes")))
    found_ = compared(old, new)
    assert [(change.fate, change.hosts) for change in found_.findings] == [
        ("gained", ("node04",)),
        ("gone", ("node02",)),
    ]
    assert found_.findings_kept == 1
    assert found_.regressions == ("error gained: mtu-differs on node04",)


def test_a_finding_whose_check_cannot_tell_any_more_is_not_gone() -> None:
    old = of(found(finding("mtu-differs", "node02")))
    found_ = compared(old, of(check_run("mtu-differs", "unknown", "no facts")))
    assert [(change.fate, change.why) for change in found_.findings] == [
        ("not known any more", "now: unknown")
    ]
    assert "mtu-differs could tell before and cannot now: no facts" in found_.regressions


def test_a_finding_on_a_node_that_is_not_there_any_more_is_not_gone() -> None:
    old = of(found(finding("mtu-differs", "node04")))
    new = of(found(finding("mtu-differs", "node01", severity="info")), snapshot=cluster(3))
    lost = [change for change in compared(old, new).findings if change.hosts == ("node04",)]
    assert [change.fate for change in lost] == ["not known any more"]


def test_what_got_worse_or_milder_is_told() -> None:
    warning, error = (
        of(found(finding("mtu-differs", "node02", severity=word))) for word in ("warning", "error")
    )
    assert [change.fate for change in compared(warning, error).findings] == ["worse"]
    assert compared(warning, error).regressions[0].startswith("the verdict was pass and is fail")
    assert [change.fate for change in compared(error, warning).findings] == ["milder"]
    assert compared(error, warning).regressions == ()


def test_a_check_that_the_older_version_did_not_have_is_no_regression() -> None:
    new = of(found(finding("env-harmful", "node02", severity="warning", code="NC603")))
    found_ = compared(HEALTHY, new)
    assert [(change.fate, change.why) for change in found_.findings] == [
        ("gained", "before: not in the list")
    ]
    assert found_.regressions == ()


@pytest.mark.parametrize(("outcome", "counts"), [("unknown", True), ("crashed", True), ("ignored", False)])
def test_less_certain_counts_unless_somebody_chose_it(outcome: Any, counts: bool) -> None:
    found_ = compared(HEALTHY, of(check_run("mtu-differs", outcome, "why")))
    assert [(check.before, check.after, check.counts) for check in found_.checks] == [
        ("passed", outcome, counts)
    ]
    assert bool(found_.regressions) is counts


def test_a_node_that_is_silent_now_is_worse() -> None:
    found_ = compared(HEALTHY, of(snapshot=with_silent(cluster(4), "node04")))
    assert found_.silent_now == ("node04",)
    assert "1 node did not report now: node04" in found_.regressions


def test_different_jobs_are_told() -> None:
    other = replace(
        HEALTHY, nodes=tuple(replace(node, host=f"x{node.host}") for node in HEALTHY.nodes), command="run"
    )
    assert compared(HEALTHY, other).different_jobs == (
        "one is of preflight, the other of run",
        "no node is in both: node[01-04] and xnode[01-04]",
    )


# --- bandwidth -----------------------------------------------------------------------------------------------------


def slower(made: BenchReport, part: float, sizes: set[int]) -> BenchReport:
    """The benchmark with the points of those sizes slower by that part."""

    def changed(point: Any) -> Any:
        times = point.time_us
        spread = {name: getattr(times, name) / (1 - part) for name in ("mean", "min", "p50", "p95", "max")}
        return replace(point, busbw_gb_s=point.busbw_gb_s * (1 - part), time_us=replace(times, **spread))

    points = tuple(changed(point) if point.size_bytes in sizes else point for point in made.points)
    return replace(made, points=points)


def test_only_a_loss_beyond_chance_and_tolerance_counts() -> None:
    one, other = calm(2, seed=1), calm(2, seed=2)
    sound = compared(replace(HEALTHY, bench=one), replace(HEALTHY, bench=other))
    assert {point.verdict for point in sound.bandwidth} == {"same"}
    assert sound.regressions == ()
    lost = compared(replace(HEALTHY, bench=one), replace(HEALTHY, bench=slower(other, 0.4, {1 << 24})))
    assert {(point.op, point.size_bytes) for point in lost.bandwidth if point.verdict == "loss"} == {
        ("all_reduce", 1 << 24),
        ("all_gather", 1 << 24),
    }
    assert len(lost.regressions) == 2
    assert "all_reduce 16M lost " in lost.regressions[0]


def test_benchmarks_that_are_not_the_same_are_not_compared() -> None:
    found_ = compared(replace(HEALTHY, bench=calm(2)), replace(HEALTHY, bench=calm(4)))
    assert found_.bandwidth == ()
    assert found_.bandwidth_note == "the bandwidths are not compared: the benchmarks are not the same"
    assert (
        "not the same benchmark: nccl with 4 ranks on 2 nodes, and nccl with 8 ranks on 2 nodes"
        in found_.different_jobs
    )
    assert (
        compared(HEALTHY, replace(HEALTHY, bench=calm(2))).bandwidth_note
        == "only the new report has a benchmark"
    )


def test_a_point_that_is_not_measured_any_more_is_worse() -> None:
    before = calm(2)
    after = replace(before, points=before.points[:-1])
    found_ = compared(replace(HEALTHY, bench=before), replace(HEALTHY, bench=after))
    assert found_.regressions == ("all_gather 512M was planned and is not measured any more",)


def renamed(made: Report) -> Report:
    return decode(to_json(made).replace("node0", "gpu-0"), Report)


def test_the_same_job_on_nodes_with_other_names_is_no_worse() -> None:
    made = full_report(2)
    found_ = compared(made, renamed(made))
    assert found_.regressions == ()
    assert found_.findings_kept == 4
    assert found_.different_jobs == ("no node is in both: node[01-03] and gpu-[01-03]",)


def test_a_fault_that_only_the_other_nodes_have_is_worse_and_named() -> None:
    new = renamed(of(found(finding("mtu-differs", "node02"))))
    found_ = compared(HEALTHY, new)
    assert "error gained: mtu-differs on gpu-02" in found_.regressions


def test_a_node_that_is_new_has_its_faults_and_it_is_said() -> None:
    new = report([found(finding("mtu-differs", "node03"))], cluster(3))
    (one,) = compared(report([check_run("mtu-differs")], cluster(2)), new).findings
    assert (one.fate, one.why) == ("gained", "the node is not in the old report")


def test_what_only_a_new_check_found_makes_no_verdict_worse() -> None:
    new = of(found(finding("brand-new", "node02", code="NC299")))
    found_ = compared(HEALTHY, new)
    assert (HEALTHY.verdict.status, new.verdict.status) == ("pass", "fail")
    assert found_.regressions == ()
    assert [(change.fate, change.why) for change in found_.findings] == [
        ("gained", "before: not in the list")
    ]
    both = of(found(finding("brand-new", "node02", code="NC299")), found(finding("mtu-differs", "node02")))
    assert compared(HEALTHY, both).regressions[0].startswith("the verdict was pass and is fail")


def test_a_second_finding_of_a_check_on_the_same_host_is_worse() -> None:
    old = of(found(finding("mtu-differs", "node02")))
    new = of(found(finding("mtu-differs", "node02"), finding("mtu-differs", "node02", summary="another")))
    assert compared(old, new).regressions == (
        "error worse: mtu-differs on node02 (2 findings of it, before 1)",
    )
    assert compared(new, old).regressions == ()


def test_a_benchmark_that_is_not_there_any_more_is_worse() -> None:
    old = replace(HEALTHY, bench=calm(2))
    assert compared(old, HEALTHY).regressions == ("there was a benchmark and there is none now",)
    assert compared(old, replace(HEALTHY, command="run")).regressions == ()
