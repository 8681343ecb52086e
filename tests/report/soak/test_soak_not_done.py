"""When a soak tells too little, and its exit code."""

from __future__ import annotations

from math import exp
from random import Random

from msgspec.structs import replace

from ncclcheck.model.bench import LEFT_EARLY, RankFailure
from ncclcheck.model.benchmarks.soak import SoakEnd, SoakGap
from ncclcheck.model.fact import Missing
from ncclcheck.report.soak.soak_not_done import soak_not_done
from tests.bench_builders import bench_result
from tests.soak_builders import (
    BEGAN,
    dropped_lines,
    healthy_lines,
    soak_block,
    soak_report,
    soak_start,
    soaked,
)


def test_a_stable_series_passes_and_a_drop_is_4() -> None:
    assert soak_report(healthy_lines()).verdict.exit_code == 0
    assert soak_report(dropped_lines()).verdict.exit_code == 4


def test_too_short_not_ended_and_gaps_are_3() -> None:
    short = soak_report([*healthy_lines(8)[:-1], SoakEnd(BEGAN, is_finished=True)])
    assert short.verdict.exit_code == 3
    assert any("too short to tell: 8 blocks, 16 at least" in reason for reason in short.verdict.reasons)
    plan = replace(bench_result().plan, ops=("all_reduce", "all_gather"))
    one_of_two = bench_result(soak=soaked(healthy_lines()), plan=plan)
    assert any("0 blocks of all_gather, 16 at least" in why for why in soak_not_done(one_of_two))
    running = soak_report(healthy_lines()[:-1])
    assert running.verdict.exit_code == 3
    assert "the soak has not ended" in running.verdict.reasons
    soak = replace(soaked(healthy_lines()), gaps=(SoakGap(100.0, 200.0),))
    assert any("nothing was measured for 100" in why for why in soak_not_done(bench_result(soak=soak)))


def test_blocks_that_vary_so_much_that_drops_do_not_show_are_3() -> None:
    random = Random(1)  # noqa: S311 (a sample, no secret)
    blocks = [soak_block(number, 1000.0 * exp(random.gauss(0, 0.1))) for number in range(100)]
    noisy = soak_report([soak_start(), *blocks, SoakEnd(BEGAN + 1000.0, is_finished=True)])
    assert noisy.verdict.exit_code == 3
    assert any("a drop of 60 s shows only from" in reason for reason in noisy.verdict.reasons)


def test_what_did_not_run_says_why() -> None:
    assert list(soak_not_done(Missing("error", "no store"))) == ["the soak did not run: no store"]
    assert list(soak_not_done(bench_result())) == ["the soak did not run: no block was measured"]


def test_a_node_on_which_ncclcheck_was_interrupted_leaves_it_unfinished() -> None:
    left = RankFailure(1, "node02", "lost", "block 3", LEFT_EARLY, 0.0)
    soak = soaked(healthy_lines())
    told = list(soak_not_done(bench_result(soak=soak, failures=(left,))))
    assert told == ["the soak was not finished: ncclcheck was interrupted on node02"]
    died = replace(left, rank=0, host="node01", state="died", detail="signal 9")
    assert list(soak_not_done(bench_result(soak=soak, failures=(left, died)))) == []
