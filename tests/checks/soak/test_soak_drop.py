"""soak-drop."""

from __future__ import annotations

from math import exp
from random import Random

from msgspec.structs import replace

from ncclcheck.model.benchmarks.op import Op
from ncclcheck.model.benchmarks.soak import SoakLine
from ncclcheck.model.fact import Missing
from tests.checks.running import finding, run
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import dropped_lines, healthy_lines, soak_block, soak_start, with_soak


def test_a_drop_names_the_node_its_direction_and_when() -> None:
    found = finding("soak-drop", with_soak(cluster(4), dropped_lines()))
    assert found.hosts == ("node02",)
    assert found.severity == "error"
    assert "node02 sends 15% less, from 0:03:20 to 0:05:00" in found.summary


def test_a_series_that_becomes_slower_all_the_time_is_found() -> None:
    lines: list[SoakLine] = [
        soak_start(),
        *(soak_block(number, 1000.0 * (1 + number / 4000) + number % 3) for number in range(800)),
    ]
    found = run("soak-drop", with_soak(cluster(4), lines)).findings[-1]
    assert "all_reduce became slower all the time" in found.summary


def test_a_collective_of_which_too_few_blocks_are_known_is_unknown() -> None:
    lines: list[SoakLine] = [soak_start()]
    for number in range(40):
        op: Op = "all_gather" if number % 10 == 0 else "all_reduce"
        lines.append(replace(soak_block(number), op=op))
    nodes = with_soak(cluster(4), lines)
    assert not isinstance(nodes.bench, Missing)
    plan = replace(nodes.bench.plan, ops=("all_reduce", "all_gather", "broadcast"))
    found = run("soak-drop", replace(nodes, bench=replace(nodes.bench, plan=plan)))
    assert found.outcome == "unknown"
    assert "4 blocks of all_gather are too few" in str(found)
    assert "0 blocks of broadcast" in str(found)


def test_noise_that_hides_drops_is_unknown_and_says_what_would_show() -> None:
    random = Random(1)  # noqa: S311 (a sample, no secret)
    lines: list[SoakLine] = [
        soak_start(),
        *(soak_block(number, 1000.0 * exp(random.gauss(0, 0.1))) for number in range(100)),
    ]
    found = run("soak-drop", with_soak(cluster(4), lines))
    assert found.outcome == "unknown"
    assert "a drop of 60 s shows only from" in found.reason
    assert run("soak-drop", with_soak(cluster(4), healthy_lines())).outcome == "passed"
