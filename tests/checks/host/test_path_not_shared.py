"""NC710 path-not-shared."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some


def views(seen: dict[str, tuple[str, ...]], nodes: int = 3, **of_node02: Any) -> Snapshot:
    snapshot = cluster(nodes)
    found = [replace(view, saw=seen.get(view.host, view.saw)) for view in some(snapshot.shared)]
    found[1] = replace(found[1], **of_node02)
    return replace(snapshot, shared=tuple(found))


def test_a_node_with_a_folder_of_its_own_is_named() -> None:
    others = ("node01", "node03")
    found = finding("path-not-shared", views({"node01": others, "node02": ("node02",), "node03": others}))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "/mnt/shared is not shared" in found.summary
    assert "node02 sees only its own file" in found.summary


def test_of_two_nodes_nobody_is_called_right() -> None:
    found = finding("path-not-shared", views({"node01": ("node01",), "node02": ("node02",)}, nodes=2))
    assert found.hosts == ("node01", "node02")
    assert "(no majority)" in found.summary


def test_one_that_sees_nothing_of_one_other_is_apart() -> None:
    found = finding("path-not-shared", views({"node02": ("node01", "node02")}))
    assert found.evidence[1].observed == "node01, node02"


def test_a_node_that_cannot_write_is_named_and_the_others_are_not() -> None:
    without = ("node01", "node03")
    snapshot = views(
        dict.fromkeys(("node01", "node02", "node03"), without),
        wrote=Missing("denied", "/mnt/shared: Read-only"),
    )
    found = finding("path-not-shared", snapshot)
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "cannot be written to by node02" in found.summary


def test_a_mark_that_stays_is_told() -> None:
    assert finding("path-not-shared", views({}, left="/mnt/shared/.ncclcheck-x: busy")).severity == "info"


def test_what_was_not_tried_is_not_passed() -> None:
    snapshot = cluster(3)
    assert is_silent("path-not-shared", snapshot)
    assert run("path-not-shared", replace(snapshot, shared=GONE)).outcome == "unknown"
    assert run("path-not-shared", replace(snapshot, shared=some(snapshot.shared)[:2])).outcome == "unknown"
    assert run("path-not-shared", views({}, saw=GONE)).outcome == "unknown"
    assert run("path-not-shared", views({}, saw=GONE, wrote=GONE)).outcome == "unknown"
