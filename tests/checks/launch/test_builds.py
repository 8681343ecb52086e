"""Nodes that run another state of ncclcheck are named where they do not understand node 0."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.launch._builds import build_hint
from ncclcheck.checks.launch.message_refused import ORDER
from ncclcheck.model.snapshot import Refused
from tests.builders import cluster, with_silent
from tests.checks.running import finding

OLD, NEW = "0.1.0", "0.1.0 (12345678)"


def test_only_hosts_that_differ_from_node_0_are_told() -> None:
    snapshot = replace(cluster(3), builds={"node01": NEW, "node02": OLD, "node03": NEW})
    hint = build_hint(snapshot, ("node02", "node03"))
    assert hint.startswith(f"node02 runs ncclcheck {OLD}, and node 0 {NEW}")
    assert build_hint(snapshot, ("node03",)) == build_hint(cluster(3), ("node02",)) == ""


def test_a_silent_node_of_another_build_says_so() -> None:
    snapshot = replace(with_silent(cluster(3), "node03"), builds={"node01": NEW, "node03": OLD})
    assert "node03 runs ncclcheck 0.1.0, and node 0" in finding("node-silent", snapshot).summary


def test_nobody_is_accused_of_an_order_that_another_build_does_not_know() -> None:
    order = Refused("node02", f"{ORDER}step 3", "unknown field")
    snapshot = replace(cluster(3), refused=(order,), builds={"node01": NEW, "node02": OLD})
    found = finding("message-refused", snapshot)
    assert "another program" not in found.summary
    assert "install the same" in found.fixes[0].text
    assert "another program" in finding("message-refused", replace(snapshot, builds={})).summary


def test_two_states_of_one_version_differ() -> None:
    snapshot = replace(cluster(3), builds={"node01": NEW, "node02": OLD, "node03": NEW})
    assert finding("version-differs", snapshot).hosts == ("node02",)
