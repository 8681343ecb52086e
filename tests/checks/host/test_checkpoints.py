"""What the nodes say of one checkpoint folder, side by side."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.host._checkpoints import FolderPlace, folders, words
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder, CheckpointPointer
from tests.builders import cluster, with_facts

NEW = Checkpoint("last.ckpt", ("file",), None, True, 1, 10, 1)
TORN = replace(NEW, name="step_9", complete=False, missing=("a", "b", "c"), missing_count=12)


def test_a_folder_that_a_node_could_not_look_into_is_left_out() -> None:
    seen = with_facts(cluster(2), "node01", checkpoints=(CheckpointFolder("/ck", (NEW,)),))
    seen = with_facts(seen, "node02", checkpoints=(CheckpointFolder("/ck", Missing("timeout")),))
    ((place,),) = folders(seen)
    assert place.host == "node01"


def test_the_newest_complete_one_and_names_without_their_ending() -> None:
    place = FolderPlace("node01", CheckpointFolder("/ck", ()), (TORN, NEW))
    assert place.newest_complete == NEW
    assert place.named("last") == NEW
    assert place.named("step_9") == TORN
    assert place.named("step") is None


def test_three_names_are_said_and_the_others_counted() -> None:
    assert words(TORN) == "without a, b, c and 9 more"
    assert (
        words(replace(TORN, missing=(), missing_count=0, damaged=("d: is empty",), damaged_count=1))
        == "d: is empty"
    )


def test_folders_of_one_path_are_the_same_and_of_local_disks_the_nth_of_each_node() -> None:
    given = {
        "node01": ("/a", "/local1", "/b"),
        "node02": ("/b", "/a", "/local2"),
        "node03": ("/a", "/b", "/local3"),
    }
    seen = cluster(3)
    for host, paths in given.items():
        seen = with_facts(seen, host, checkpoints=tuple(CheckpointFolder(path, (NEW,)) for path in paths))
    assert {tuple(place.folder.path for place in places) for places in folders(seen)} == {
        ("/a", "/a", "/a"),
        ("/b", "/b", "/b"),
        ("/local1", "/local2", "/local3"),
    }


def test_a_job_resumes_from_what_a_file_or_link_names_but_not_from_the_best() -> None:
    best, latest = CheckpointPointer("best", "step_1", is_link=True), CheckpointPointer("latest", "step_9")
    whole = FolderPlace("node01", CheckpointFolder("/ck", (), (best, latest)), (TORN, NEW))
    assert whole.resumed == "step_9"
    assert FolderPlace("node01", CheckpointFolder("/ck", (), (best,)), (TORN, NEW)).resumed == "last.ckpt"
    assert FolderPlace("node01", CheckpointFolder("/ck", ()), (TORN,)).resumed == ""
