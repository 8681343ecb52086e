"""What a whole series tells."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.soak.series_events import SoakJudge
from ncclcheck.model.benchmarks.soak import NodeCounts, SoakBlock, SoakLine
from tests.soak_builders import (
    BEGAN,
    dropped_lines,
    healthy_lines,
    pairs_block,
    soak_block,
    soak_start,
    soaked,
)


def test_a_healthy_series_has_no_event() -> None:
    soak = soaked(healthy_lines())
    assert soak.events == ()
    assert soak.blocks == 40
    assert soak.seconds == 400.0
    assert soak.is_finished
    assert soak.series[0].iterations == 3900
    assert soak.series[0].p999_us is None
    assert soak.series[0].p99_us is not None
    assert soak.series[0].p99_us <= max(sample.worst_us for sample in soak.series[0].samples)


def test_a_drop_is_told_with_node_direction_begin_and_end() -> None:
    (event,) = soaked(dropped_lines()).events
    assert (event.kind, event.hosts, event.direction) == ("drop", ("node02",), "send")
    assert event.from_s == pytest.approx(200, abs=20)
    assert event.to_s == pytest.approx(300, abs=20)
    assert event.size_percent == pytest.approx(15, abs=1)
    assert event.named_s is not None
    assert event.named_s - 200 <= 60


def test_pairs_just_before_a_drop_is_suspected_are_no_usual_ones() -> None:
    lines = dropped_lines()
    lines[11] = pairs_block(10)
    lines[22] = pairs_block(21, ["node02"])
    lines[24] = pairs_block(23, ["node02"])
    lines[23] = soak_block(22, 1176.0)
    (event,) = soaked(lines).events
    assert (event.hosts, event.direction) == (("node02",), "send")


def test_the_counter_that_moved_with_a_drop_is_told() -> None:
    lines: list[SoakLine] = []
    for line in dropped_lines():
        if isinstance(line, SoakBlock) and line.op is not None:
            errors = 9 if 20 <= line.number < 30 else 0
            line = replace(line, nodes=(NodeCounts("node02", {"eth0 tx_errors": errors}),))
        lines.append(line)
    (event,) = soaked(lines).events
    assert [counter.split(" +")[0] for counter in event.counters] == ["node02: eth0 tx_errors"]


def test_a_resumed_series_has_a_gap_and_the_same_clock() -> None:
    lines = healthy_lines(30)[:-1]
    late_s = BEGAN + 1000.0
    lines += [soak_start(late_s), *(soak_block(n, at_s=late_s + 10 * (n - 30)) for n in range(30, 50))]
    soak = soaked(lines)
    assert [(gap.from_s, gap.to_s) for gap in soak.gaps] == [(300.0, 1000.0)]
    assert soak.seconds == 1200.0
    assert soak.events == ()
    assert not soak.is_finished


def test_a_resumed_series_is_judged_by_the_new_drop() -> None:
    late_s = BEGAN + 400.0
    for drop, kinds in ((0.05, ["drop"]), (0.3, [])):
        start = soak_start(late_s)
        lines = healthy_lines(40)[:-1]
        lines += [replace(start, plan=replace(start.plan, drop=drop))]
        lines += [soak_block(n, 1176.0, at_s=BEGAN + 10 * n) for n in range(40, 60)]
        assert [event.kind for event in soaked(lines).events] == kinds


def test_blocks_that_are_not_known_are_a_gap() -> None:
    lines = healthy_lines(40)
    del lines[11:21]
    assert [(gap.from_s, gap.to_s) for gap in soaked(lines).gaps] == [(100.0, 200.0)]


def test_the_judge_says_with_which_block_to_go_on() -> None:
    judge = SoakJudge()
    for line in healthy_lines(12):
        judge.feed(line)
    assert judge.next_number == 12


def test_damaged_lines_are_counted() -> None:
    assert soaked([*healthy_lines(), None]).unreadable == 1


def test_memory_does_not_grow_with_the_series() -> None:
    judge = SoakJudge()
    judge.feed(soak_start())
    for number in range(5000):
        judge.feed(soak_block(number, 1000.0 + number % 7))
    assert len(judge.result().series[0].samples) <= 1024
