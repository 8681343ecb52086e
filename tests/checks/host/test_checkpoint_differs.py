"""NC716 checkpoint-differs."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder, CheckpointPointer
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


def seen_by(*folders: tuple[CheckpointFolder, ...]) -> Snapshot:
    """Nodes that see these."""
    snapshot = cluster(len(folders))
    for node, own in zip(snapshot.nodes, folders, strict=True):
        snapshot = with_facts(snapshot, node.host, checkpoints=own)
    return snapshot


def pointing(name: str) -> CheckpointFolder:
    return CheckpointFolder("/ck", (NEW, OLD), (CheckpointPointer("latest", name),))


def test_what_a_pointer_names_is_compared() -> None:
    found = finding("checkpoint-differs", seen_by((pointing("step_30"),), (pointing("step_20"),)))
    assert "step_20" in found.summary
    assert "ranks resume from different steps" in found.summary
    assert is_silent("checkpoint-differs", seen_by((pointing("step_20"),), (pointing("step_20"),)))


def test_a_node_without_the_option_is_unknown() -> None:
    outcome = run("checkpoint-differs", seen_by((CheckpointFolder("/ck", (NEW,)),), ()))
    assert outcome.outcome == "unknown"
    assert "--checkpoint /ck was given on 1 of 2 nodes" in outcome.reason


def test_folders_are_compared_in_any_order() -> None:
    first, second = CheckpointFolder("/a", (NEW,)), CheckpointFolder("/b", (OLD,))
    assert is_silent("checkpoint-differs", seen_by((first, second), (second, first)))


def test_a_newest_one_that_is_not_known_is_unknown() -> None:
    late = CheckpointFolder("/ck", (replace(NEW, complete=Missing("timeout")), OLD))
    assert run("checkpoint-differs", seen_by((late,), (late,))).outcome == "unknown"
