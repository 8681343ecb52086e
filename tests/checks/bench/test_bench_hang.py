"""NC801 bench-hang."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.bench import LEFT_EARLY, RankFailure
from ncclcheck.model.fact import Missing
from tests.bench_builders import with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run


def test_all_finished() -> None:
    assert is_silent("bench-hang", with_bench(cluster(4)))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("died", "died"),
        ("stopped", "is stopped"),
        ("late", "did not arrive in time"),
        ("lost", "went silent"),
        ("error", "ended with an error"),
        ("hung", "has a GPU that hangs"),
    ],
)
def test_the_culprit_is_named_with_rank_host_place_and_time(state: str, words: str) -> None:
    failure = RankFailure(5, "node03", "died", "all_reduce 64M, iteration 3", "signal 9", 20.0)
    broken = with_bench(cluster(4), failures=(replace(failure, state=state),))
    found = finding("bench-hang", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert f"rank 5 on node03 {words} (all_reduce 64M, iteration 3, waited 20.0 s): signal 9" in found.summary


def test_two_culprits_are_two_findings() -> None:
    failures = tuple(RankFailure(rank, "node03", "died", "joining the group", "", 1.0) for rank in (4, 5))
    assert len(run("bench-hang", with_bench(cluster(4), failures=failures)).findings) == 2


def test_where_nobody_moves_the_network_is_suspected_once() -> None:
    stuck = tuple(
        RankFailure(rank, f"node0{rank + 1}", "stuck", "all_reduce 64M", "none gets on", 20.0)
        for rank in range(4)
    )
    found = finding("bench-hang", with_bench(cluster(4), failures=stuck))
    assert found.hosts == ("node01", "node02", "node03", "node04")


def test_without_a_benchmark_the_question_does_not_arise() -> None:
    assert run("bench-hang", cluster(4)).outcome == "not_applicable"


def test_a_benchmark_that_was_lost_is_unknown() -> None:
    assert (
        run("bench-hang", replace(cluster(4), bench=Missing("timeout", "no time left"))).outcome == "unknown"
    )
    assert run("bench-hang", with_bench(cluster(4), started=False)).outcome == "unknown"


def test_a_benchmark_that_ran_out_of_time_is_unknown_with_the_reason() -> None:
    ended = run("bench-hang", with_bench(cluster(4), unfinished="--timeout was over after 1 of 10 points"))
    assert ended.outcome == "unknown"
    assert "after 1 of 10 points" in ended.reason


def test_workers_that_do_not_die_are_an_error_though_all_was_measured() -> None:
    """Else the prefix would start the job on GPUs that are still held."""
    undead = ("rank 3 (pid 4711, state D) on node02",)
    found = finding("bench-hang", with_bench(cluster(4), undead=undead))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "SIGKILL did not end rank 3 (pid 4711, state D) on node02" in found.summary


def test_a_node_on_which_ncclcheck_was_interrupted_is_a_warning_that_accuses_nobody() -> None:
    left = RankFailure(5, "node03", "lost", "all_reduce 64M, iteration 3", LEFT_EARLY, 0.0)
    found = finding("bench-hang", with_bench(cluster(4), failures=(left,)))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "ncclcheck was interrupted on node03" in found.summary
    assert "says nothing of the node" in found.summary
