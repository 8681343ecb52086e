"""The same snapshot gives the same report, saved and replayed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.codec import decode, encode_pretty
from ncclcheck.model.fact import Missing
from ncclcheck.model.policy.policy import parse_policy
from ncclcheck.model.saved import Saved
from ncclcheck.run.judge import RunClock, judge, save, start_clock
from ncclcheck.run.options import RunOptions
from ncclcheck.run.replay import replay
from tests.builders import cluster, with_software

OPTIONS = RunOptions(command="preflight")


def test_a_saved_run_replays_to_the_identical_report() -> None:
    saved = save(cluster(4), OPTIONS, start_clock(), interrupted=False)
    again = decode(encode_pretty(saved), Saved)
    assert again == saved
    ended = replay(again, OPTIONS)
    assert ended.saved == saved
    assert encode_pretty(ended.report) == encode_pretty(judge(saved, OPTIONS))
    assert judge(saved, OPTIONS).verdict.exit_code == 0


def test_an_interrupted_run_is_130_and_still_a_report() -> None:
    saved = save(replace(cluster(2), viewpoint="one-node"), OPTIONS, start_clock(), interrupted=True)
    report = judge(saved, OPTIONS)
    assert report.verdict.exit_code == 130
    assert len(report.nodes) == 2


def test_what_was_demanded_of_a_run_is_saved_and_may_be_changed_in_a_replay() -> None:
    demanding = replace(OPTIONS, gpus_per_node=7)
    saved = save(cluster(2), demanding, start_clock(), interrupted=False)
    assert judge(saved, demanding).verdict.exit_code == 1
    assert replay(saved, OPTIONS).report.verdict.exit_code == 1
    assert replay(saved, replace(OPTIONS, gpus_per_node=8)).report.verdict.exit_code == 0
    assert replay(saved, replace(OPTIONS, gpus_per_node=8)).saved.snapshot.expected_gpus_per_node == 8


def test_the_number_of_nodes_of_a_policy_holds_in_a_replay_too() -> None:
    saved = save(cluster(2), OPTIONS, start_clock(), interrupted=False)
    report = replay(saved, replace(OPTIONS, flags=LaunchFlags(nnodes=4))).report
    assert [(finding.slug, finding.summary) for finding in report.findings] == [
        ("world-size-mismatch", "the job has 2 nodes but 4 are required")
    ]
    assert replay(saved, replace(OPTIONS, flags=LaunchFlags(nnodes=2))).report.verdict.exit_code == 0


def test_a_preflight_replayed_as_a_benchmark_is_one_that_did_not_run() -> None:
    saved = save(cluster(2), OPTIONS, start_clock(), interrupted=False)
    report = replay(saved, RunOptions(command="bench")).report
    assert (report.command, report.verdict.exit_code) == ("bench", 3)
    assert report.verdict.reasons == ("the benchmark did not run: no benchmark was run",)


POLICY = """
ignore = [{check = "software-unexpected", reason = "new torch next week", until = 2026-11-30}]
[versions]
torch = "2.8.0"
"""


def with_policy(text: str) -> RunOptions:
    return replace(OPTIONS, expected=parse_policy(text, "site.toml").expected)


def test_an_exception_is_judged_by_the_day_of_the_run_and_said_when_it_is_over() -> None:
    options = with_policy(POLICY)
    for created, code, slugs in (
        ("2026-11-30T23:59:59+00:00", 0, []),
        ("2026-12-01T00:00:00+00:00", 1, ["software-unexpected", "exception-expired"]),
    ):
        saved = save(cluster(2), options, RunClock(created, 0.0), interrupted=False)
        report = judge(saved, options)
        assert (report.verdict.exit_code, [finding.slug for finding in report.findings]) == (code, slugs)
        assert encode_pretty(replay(saved, OPTIONS).report) == encode_pretty(report)


def test_a_replay_may_be_judged_by_another_policy() -> None:
    saved = save(cluster(2), with_policy(POLICY), start_clock(), interrupted=False)
    changed = with_policy('[versions]\ntorch = "2.9.0"\n')
    assert replay(saved, changed).report.verdict.exit_code == 0
    assert replay(saved, with_policy("")).saved.snapshot.expected.expectations == ()


def test_what_is_demanded_and_could_not_be_read_is_no_pass() -> None:
    options = with_policy('[versions]\ntorch = "2.9.0"\n')
    broken = with_software(cluster(2), "node02", torch=Missing("error", "damaged"))
    report = judge(save(broken, options, start_clock(), interrupted=False), options)
    assert report.verdict.exit_code == 3
    assert "the required check software-unexpected did not run (unknown: node02" in report.verdict.reasons[0]


def test_a_facts_file_has_no_date_and_is_judged_as_of_now() -> None:
    saved = replace(save(cluster(1), OPTIONS, start_clock(), interrupted=False), created="unknown")
    options = with_policy(POLICY.replace("2026-11-30", "2099-11-30"))
    assert replay(saved, options).report.verdict.exit_code == 0
