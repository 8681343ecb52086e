"""The report is the snapshot, the checks and the advice, whole and in a fixed order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.bench import RankFailure
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Silent
from tests.bench_builders import bench_point, bench_result, with_bench
from tests.builders import cluster, left_alone, seen_alone, with_silent, without
from tests.report.reports import check_run, finding, found, report


def test_nodes_come_by_rank_and_silent_ones_have_no_facts() -> None:
    snapshot = with_silent(cluster(4), "node02")
    made = report(snapshot=replace(snapshot, nodes=tuple(reversed(snapshot.nodes))))
    assert [(node.host, node.status) for node in made.nodes] == [
        ("node01", "reported"),
        ("node02", "silent"),
        ("node03", "reported"),
        ("node04", "reported"),
    ]
    assert not made.nodes[1].facts
    assert made.verdict.exit_code == 3
    assert made.verdict.reasons == ("1 node did not report: node02",)


def test_a_node_that_fell_silent_after_its_facts_is_one_node() -> None:
    snapshot = cluster(3)
    made = report(snapshot=replace(snapshot, silent=(Silent("node02", 1, "probes", 14.0),)))
    assert [(node.host, node.status) for node in made.nodes] == [
        ("node01", "reported"),
        ("node02", "silent"),
        ("node03", "reported"),
    ]
    assert made.nodes[1].facts
    assert (made.verdict.exit_code, made.verdict.reasons) == (3, ("1 node stopped answering: node02",))
    assert replace(snapshot, silent=(Silent("node02", 1, "probes", 14.0),)).nnodes == 3


def test_findings_come_worst_first_and_checks_by_code() -> None:
    runs = [
        found(finding("b", "node02", severity="warning", code="NC202")),
        found(finding("c", "node01", code="NC203")),
        check_run("a", code="NC101"),
    ]
    made = report(runs)
    assert [one.slug for one in made.findings] == ["c", "b"]
    assert [check.slug for check in made.checks] == ["a", "b", "c"]


def test_the_same_arguments_give_the_same_report() -> None:
    assert report() == report()


def test_nccl_is_told_where_it_is_known_and_left_out_where_not() -> None:
    made = report(snapshot=without(cluster(3), "node02", "nccl"))
    assert [(entry.host, entry.interface, entry.source) for entry in made.nccl] == [
        ("node01", "eth0", "asked"),
        ("node03", "eth0", "asked"),
    ]


def test_a_benchmark_that_had_to_run_and_did_not_is_no_pass() -> None:
    made = report(command="run")
    assert made.verdict.exit_code == 3
    assert made.verdict.reasons == ("the benchmark did not run: no benchmark was run",)
    assert report(command="preflight").verdict.exit_code == 0


def test_a_benchmark_that_never_started_is_no_pass() -> None:
    snapshot = replace(cluster(4), bench=replace(bench_result(), points=(), started=False))
    assert report(snapshot=snapshot, command="bench").verdict.reasons == ("the benchmark did not start",)


def test_the_benchmark_is_reported_as_measured() -> None:
    made = report(snapshot=with_bench(cluster(4)), command="bench")
    assert made.bench is not None
    assert len(made.bench.points) == 3
    assert made.verdict.exit_code == 0


def test_a_node_that_met_nobody_cannot_tell() -> None:
    made = report(snapshot=seen_alone(cluster(4), "node03"))
    assert made.verdict.exit_code == 3
    assert made.verdict.reasons == ("node03 did not meet the other nodes",)


def test_a_node_that_lost_node_0_says_when_and_not_that_nothing_was_measured() -> None:
    made = report(snapshot=left_alone(cluster(4), "node03"), command="bench")
    assert made.verdict.exit_code == 3
    assert made.verdict.reasons == ("node 0 (node01) was lost during the benchmark",)


def test_probes_that_were_not_made_are_none() -> None:
    gone = Missing("timeout", "too late")
    made = report(snapshot=replace(cluster(4), probes=gone, coverage=gone))
    assert made.probes == ()
    assert made.coverage == gone


def test_requiring_what_is_no_check_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no-such-check"):
        report(require=("no-such-check",))


def test_a_bug_outranks_everything() -> None:
    assert report([found(finding("x", "node01"))], bug="KeyError: 'x'").verdict.exit_code == 70


def test_a_benchmark_that_was_not_finished_is_no_pass() -> None:
    snapshot = with_bench(cluster(4), bench_point(1 << 20, (3.0, 1.0, 4.0, 2.0)))
    made = report(snapshot=snapshot, command="bench")
    assert made.verdict.exit_code == 3
    assert made.verdict.reasons[0].startswith(
        "the benchmark was not finished: 1 of 3 points were measured: give it a longer --timeout"
    )


def test_a_benchmark_that_a_rank_spoiled_is_told_by_the_finding_alone() -> None:
    failure = RankFailure(2, "node03", "stopped", "all_reduce 2M, iteration 3", "", 20.0)
    snapshot = with_bench(cluster(4), bench_point(1 << 20, (3.0, 1.0, 4.0, 2.0)), failures=(failure,))
    assert not any(
        "not finished" in reason for reason in report(snapshot=snapshot, command="run").verdict.reasons
    )


def test_a_single_node_is_not_said_to_have_missed_the_others() -> None:
    alone = replace(cluster(1), viewpoint="one-node")
    assert report(snapshot=alone).verdict.exit_code == 0


def test_a_node_of_which_nothing_was_read_is_no_pass() -> None:
    blind = without(without(cluster(2), "node02", "interfaces"), "node02", "environment")
    made = report(snapshot=blind)
    assert made.verdict.exit_code == 3
    assert made.verdict.reasons == ("neither the interfaces nor the environment of node02 could be read",)


def test_gpus_that_were_demanded_and_could_not_be_counted_are_no_pass() -> None:
    snapshot = replace(cluster(2), expected_gpus_per_node=8)
    unknown = check_run("gpu-count", "unknown", "node02: NVML hangs", code="NC401")
    made = report([check_run("node-silent", code="NC101"), unknown], snapshot=snapshot)
    assert made.verdict.reasons == ("the required check gpu-count did not run (unknown: node02: NVML hangs)",)
    ignored = check_run("gpu-count", "ignored", "--ignore", code="NC401")
    runs = [check_run("node-silent", code="NC101"), ignored]
    assert report(runs, snapshot=snapshot).verdict.exit_code == 0
