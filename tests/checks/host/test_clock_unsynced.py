"""NC711 clock-unsynced."""

from __future__ import annotations

from ncclcheck.model.facts import Clock
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, is_silent

OFF = Clock(False, 16_000_000)


def test_a_node_that_was_forgotten_is_named() -> None:
    found = finding("clock-unsynced", with_facts(cluster(4), "node02", clock=OFF))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "while node01, node03 and node04 are" in found.summary


def test_where_none_is_it_is_information() -> None:
    assert finding("clock-unsynced", everywhere(cluster(3), clock=OFF)).severity == "info"


def test_synchronised_clocks_are_silent() -> None:
    assert is_silent("clock-unsynced", cluster(3))
