"""NC124 node-stood-still."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Silent, StoodStill
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run


def test_nodes_that_ran_all_the_time_are_silent() -> None:
    assert is_silent("node-stood-still", cluster(3))


def test_a_node_0_that_stood_still_accuses_nobody_of_silence() -> None:
    still = StoodStill("node01", 14.9, is_listener=True)
    paused = replace(cluster(3), stood_still=(still,), silent=(Silent("node02", 1, "probes", 5.0),))
    found = finding("node-stood-still", paused)
    assert (found.severity, found.hosts) == ("warning", ("node01",))
    assert found.summary.startswith("ncclcheck on node01 itself stood still for 15 s")
    silence = run("node-silent", paused)
    assert (silence.outcome, silence.findings) == ("unknown", ())


def test_the_silence_of_a_node_that_stood_still_is_told() -> None:
    paused = replace(
        cluster(3), stood_still=(StoodStill("node02", 12.0),), silent=(Silent("node02", 1, "probes", 5.0),)
    )
    assert finding("node-silent", paused).hosts == ("node02",)
    assert "says nothing" in finding("node-stood-still", paused).summary
