"""NC716 checkpoint-differs."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run

NEW = Checkpoint("step_30", ("dcp",), 30, True, 3, 300, 7)
OLD = replace(NEW, name="step_20", step=20)


def seen(*odd: Checkpoint) -> Snapshot:
    """Three nodes see both; node02 sees those."""
    snapshot = cluster(3)
    for node in snapshot.nodes:
        own = odd if node.host == "node02" else (NEW, OLD)
        snapshot = with_facts(snapshot, node.host, checkpoints=(CheckpointFolder("/ck", own),))
    return snapshot


def test_the_same_everywhere_is_silent() -> None:
    assert is_silent("checkpoint-differs", seen(NEW, OLD))
    assert is_silent("checkpoint-differs", seen(NEW))


def test_a_node_that_would_resume_from_another_step_is_named() -> None:
    found = finding("checkpoint-differs", seen(replace(NEW, complete=False), OLD))
    assert found.hosts == ("node02",)
    assert "step_20" in found.summary
    assert "ranks resume from different steps" in found.summary


def test_other_sizes_under_the_same_name_are_found() -> None:
    found = finding("checkpoint-differs", seen(replace(NEW, digest=8), OLD))
    assert found.hosts == ("node02",)


def test_without_the_option_it_does_not_apply() -> None:
    assert run("checkpoint-differs", cluster(2)).outcome == "not_applicable"
