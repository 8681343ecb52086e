"""NC118 place-contested."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Contested
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run


def test_one_process_per_place_is_silent() -> None:
    assert is_silent("place-contested", cluster(3))


def test_somebody_else_is_named_as_the_cause() -> None:
    place = Contested("node02", 1, "hello", "1 more said hello as node rank 1 (host evil)")
    found = finding("place-contested", replace(cluster(3), contested=(place,)))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert found.summary.startswith("somebody else answers for node02: 1 more said hello")
    assert "every machine that reaches the master port" in found.evidence[0].source


def test_one_node_has_no_messages() -> None:
    assert run("place-contested", cluster(1)).outcome == "not_applicable"
