"""What interfaces counted during a run, in words."""

from __future__ import annotations

from ncclcheck.checks.network._links import counted_growth, growth_text, not_connected
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import LinkCounters
from tests.builders import cluster, with_outcome


def test_only_what_grew_is_told_and_what_was_not_there_counted_nothing() -> None:
    counted = LinkCounters(
        "eth0", {"rx_errors": 1, "rx_dropped": 5}, {"rx_errors": 3, "rx_dropped": 5, "new": 9}
    )
    assert counted_growth(counted) == {"rx_errors": 2, "new": 9}
    gone = Missing("absent", "gone")
    assert counted_growth(LinkCounters("eth0", {"rx_errors": 1}, gone)) == gone


def test_where_no_counter_grew_that_is_evidence_too() -> None:
    (evidence,) = growth_text(cluster(2), "node02", "eth0")
    assert evidence.observed.startswith("no counter")
    assert growth_text(cluster(2), "node02", "eth7") == ()


def test_a_pair_that_does_not_connect_is_named() -> None:
    (unknown,) = not_connected(with_outcome(cluster(3), "filtered", [("node01", "node02")]))
    assert unknown.hosts == ("node01",)
    assert "node02" in unknown.reason
