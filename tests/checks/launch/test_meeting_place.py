"""NC116 meeting-place."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.snapshot import MeetingView, Snapshot
from tests.builders import cluster, seen_alone, with_silent
from tests.checks.running import finding, is_silent, run

MET = MeetingView("node01", 0, "/shared", "met", filesystem="nfs4")


def seen_by(*views: MeetingView) -> Snapshot:
    return replace(cluster(4), meetings=views)


def apart(host: str, rank: int, **changes: Any) -> MeetingView:
    view = MeetingView(host, rank, "/shared", "alone", "node 0 did not come", "nfs4", (), 9.0)
    return replace(view, **changes)


def test_all_met_there_or_nobody_was_to() -> None:
    assert is_silent("meeting-place", seen_by(MET))
    assert run("meeting-place", seen_by(MET)).outcome == "passed"
    assert run("meeting-place", cluster(4)).outcome == "not_applicable"


def test_a_folder_that_is_another_one_on_some_nodes_is_not_shared() -> None:
    views = [apart("node02", 1, first_node_there=True), apart("node03", 2, first_node_there=True)]
    found = finding("meeting-place", seen_by(replace(MET, outcome="alone", filesystem="ext4"), *views))
    assert (found.severity, found.hosts) == ("error", ("node02", "node03"))
    assert "/shared is not shared" in found.summary


def test_of_a_folder_in_which_any_user_may_remove_files_that_is_said_too() -> None:
    view = apart("node02", 1, outcome="unusable", detail="No such file or directory")
    assert "sticky" not in finding("meeting-place", seen_by(view)).summary
    found = finding("meeting-place", seen_by(replace(view, is_open=True)))
    assert "anybody may have removed or replaced files there" in found.summary
    assert found.fixes[-1].commands == ("chmod +t /shared",)
    assert is_silent("meeting-place", seen_by(replace(MET, is_open=True)))


def test_a_local_filesystem_is_the_cause_where_nobody_can_be_reached() -> None:
    alone = seen_alone(cluster(4), "node02")
    found = finding("meeting-place", replace(alone, meetings=(apart("node02", 1, filesystem="tmpfs"),)))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "tmpfs" in found.summary


def test_a_folder_that_may_be_shared_and_where_nobody_came_is_a_warning() -> None:
    found = finding("meeting-place", seen_by(apart("node02", 1)))
    assert found.severity == "warning"
    assert "not shared, or they were not started" in found.summary


def test_others_that_wait_too_show_that_node_0_was_not_started() -> None:
    found = finding("meeting-place", seen_by(apart("node02", 1, outcome="headless", others=("node03",))))
    assert found.severity == "warning"
    assert "node 0 was not started" in found.summary
    assert "node03" in str(found.evidence)


def test_node_0_that_came_and_opened_no_run_is_named_and_neither_the_folder_nor_the_others() -> None:
    view = apart("node02", 1, outcome="headless", others=("node01", "node03"), first="node01")
    found = finding("meeting-place", seen_by(view))
    assert (found.severity, found.hosts) == ("warning", ("node01",))
    assert "node 0 (node01) came to /shared" in found.summary
    assert "filesystem" not in str(found.fixes)


def test_a_helper_that_was_killed_is_told_and_the_folder_is_not_blamed() -> None:
    view = apart("node03", 2, outcome="no-helper", detail="was killed by SIGKILL")
    found = finding("meeting-place", seen_by(MET, view))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "for node03 was killed by SIGKILL" in found.summary
    assert "name a folder" not in str(found.fixes)


def test_a_folder_that_cannot_be_used_is_an_error_with_the_reason() -> None:
    view = apart("node02", 1, outcome="unusable", detail="denied: /shared: Permission denied")
    found = finding("meeting-place", seen_by(replace(MET, outcome="alone", filesystem="ext4"), view))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "Permission denied" in found.summary


def test_node_silent_does_not_say_it_again() -> None:
    short = with_silent(cluster(4), "node03")
    assert is_silent("node-silent", replace(short, meetings=(MET, apart("node03", 2, first_node_there=True))))
