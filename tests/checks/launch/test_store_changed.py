"""NC123 store-changed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Silent, StoreChanged
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run

GONE = StoreChanged("node01", "serving", "is gone")


def test_a_store_that_nobody_changes_is_silent() -> None:
    assert is_silent("store-changed", cluster(3))


def test_a_stranger_is_named_and_no_node_accused() -> None:
    disturbed = replace(cluster(3), store_changed=(GONE,), silent=(Silent("node02", 1, "probes", 5.0),))
    found = finding("store-changed", disturbed)
    assert (found.severity, found.hosts) == ("warning", ())
    assert "another program writes into the store of this run" in found.summary
    assert "serving is gone" in found.summary
    silence = run("node-silent", disturbed)
    assert (silence.outcome, silence.findings) == ("unknown", ())
    assert "another program" in silence.reason


def test_one_node_sends_no_messages() -> None:
    assert run("store-changed", cluster(1)).outcome == "not_applicable"
