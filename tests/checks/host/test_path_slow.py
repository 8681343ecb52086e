"""NC708 path-slow."""

from __future__ import annotations

from typing import Any

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, path_fact


def seen(**changes: Any) -> Snapshot:
    return with_facts(everywhere(cluster(3), paths=(path_fact(),)), "node02", paths=(path_fact(**changes),))


def test_a_node_that_is_far_slower_than_the_others() -> None:
    found = finding("path-slow", seen(read_ms=40.0))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "takes 40 ms, while 1 ms is usual" in found.summary


def test_slow_everywhere_is_slow_too() -> None:
    assert len(run("path-slow", everywhere(cluster(2), paths=(path_fact(stat_ms=150.0),))).findings) == 2


def test_a_little_slower_is_silent() -> None:
    assert is_silent("path-slow", seen(stat_ms=8.0))
    assert is_silent("path-slow", seen(read_ms=9.0))


def test_what_was_not_measured_is_not_passed() -> None:
    assert run("path-slow", seen(stat_ms=GONE)).outcome == "unknown"
    assert run("path-slow", seen(kind=GONE, stat_ms=GONE, read_ms=GONE)).outcome == "unknown"
