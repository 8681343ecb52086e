"""NC715 checkpoint-incomplete."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder, CheckpointPointer
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run

WHOLE = Checkpoint("step_20", ("dcp",), 20, True, 3, 300, 7)
TORN = replace(WHOLE, name="step_30", step=30, complete=False, missing=(".metadata",), missing_count=1)


def seen(*checkpoints: Checkpoint, pointer: str | None = None, unknown: int = 0, older: int = 0) -> Snapshot:
    """A cluster of two nodes that both see these, the newest first."""
    pointers = () if pointer is None else (CheckpointPointer("latest", pointer),)
    folder = CheckpointFolder("/ck", checkpoints, pointers, older, unknown)
    snapshot = cluster(2)
    for node in snapshot.nodes:
        snapshot = with_facts(snapshot, node.host, checkpoints=(folder,))
    return snapshot


def pointed(pointer: CheckpointPointer, *checkpoints: Checkpoint) -> Snapshot:
    """A node that sees these, and this pointer."""
    folder = CheckpointFolder("/ck", checkpoints or (WHOLE,), (pointer,))
    return with_facts(cluster(1), "node01", checkpoints=(folder,))


def test_complete_ones_are_silent() -> None:
    assert is_silent("checkpoint-incomplete", seen(WHOLE))
    assert is_silent("checkpoint-incomplete", seen(WHOLE, pointer="step_20"))


def test_the_newest_is_named_with_what_it_lacks_and_the_one_to_use() -> None:
    found = finding("checkpoint-incomplete", seen(TORN, WHOLE))
    assert found.severity == "warning"
    assert found.hosts == ("node01", "node02")
    assert "/ck/step_30 is incomplete: without .metadata; the newest complete one is step_20" in found.summary
    assert "mv /ck/step_30" in found.fixes[0].commands[0]


def test_without_any_complete_one_it_is_an_error() -> None:
    assert finding("checkpoint-incomplete", seen(TORN)).severity == "error"


def test_an_incomplete_one_that_is_named_is_an_error_and_the_line_to_type_corrects_it() -> None:
    found = finding("checkpoint-incomplete", seen(TORN, WHOLE, pointer="step_30"))
    assert found.severity == "error"
    assert "/ck/latest names 'step_30', which is incomplete" in found.summary
    assert found.fixes[0].commands == ("echo step_20 > /ck/latest",)


def test_a_checkpoint_that_is_named_and_missing_is_an_error_and_one_that_was_not_looked_into_is_unknown() -> (
    None
):
    lost = CheckpointPointer("latest", "gone", is_there=False)
    assert "which is not there" in finding("checkpoint-incomplete", pointed(lost)).summary
    assert run("checkpoint-incomplete", seen(WHOLE, pointer="step_1", older=3)).outcome == "unknown"


def test_a_link_is_corrected_as_a_link_and_names_are_quoted() -> None:
    odd = replace(WHOLE, name="step 20;x")
    found = finding(
        "checkpoint-incomplete", pointed(CheckpointPointer("last", "step_30", is_link=True), TORN, odd)
    )
    assert found.fixes[0].commands == ("ln -sfn 'step 20;x' /ck/last",)


def test_what_is_not_known_is_not_passed() -> None:
    late = replace(WHOLE, complete=Missing("timeout", "only 7 files were listed in the time for it"))
    assert run("checkpoint-incomplete", seen(late)).outcome == "unknown"
    assert run("checkpoint-incomplete", seen(unknown=2)).outcome == "unknown"
    dead = CheckpointFolder("/ck", Missing("timeout", "/ck did not answer within 6 s"))
    assert (
        run("checkpoint-incomplete", with_facts(cluster(2), "node02", checkpoints=(dead,))).outcome
        == "unknown"
    )


def test_an_empty_folder_is_a_first_start() -> None:
    assert finding("checkpoint-incomplete", seen()).severity == "info"


def test_without_the_option_it_does_not_apply() -> None:
    assert run("checkpoint-incomplete", cluster(2)).outcome == "not_applicable"


def test_an_empty_pointer_is_said_to_be_empty() -> None:
    found = finding("checkpoint-incomplete", pointed(CheckpointPointer("latest", "", is_there=False)))
    assert "/ck/latest is empty" in found.summary
    assert found.fixes[0].commands == ("echo step_20 > /ck/latest",)


def test_a_folder_in_which_the_framework_finds_nothing_is_named() -> None:
    of_megatron = replace(WHOLE, name="iter_0000020", named_by="latest_checkpointed_iteration.txt")
    found = finding("checkpoint-incomplete", seen(of_megatron))
    assert found.severity == "warning"
    assert "Megatron-LM finds no checkpoint in it" in found.summary
    assert found.fixes[0].commands == ("echo 20 > /ck/latest_checkpointed_iteration.txt",)
    of_deepspeed = replace(WHOLE, named_by="latest")
    assert "DeepSpeed finds" in finding("checkpoint-incomplete", seen(of_deepspeed)).summary
    assert is_silent("checkpoint-incomplete", seen(of_deepspeed, pointer="step_20"))
    assert is_silent("checkpoint-incomplete", seen(replace(of_deepspeed, name=".")))


def test_what_may_be_a_part_of_a_whole_one_is_never_moved() -> None:
    parts = replace(TORN, name="optimizer_0", step=0), replace(WHOLE, name="pytorch_model_fsdp_0", step=0)
    found = finding("checkpoint-incomplete", seen(*parts))
    assert "pytorch_model_fsdp_0 beside it is complete" in found.summary
    (fix,) = found.fixes
    assert fix.commands == ()
    assert "if that is a checkpoint of its own" in fix.text


def test_all_that_is_newer_and_incomplete_is_moved_at_once() -> None:
    (fix,) = finding("checkpoint-incomplete", seen(replace(TORN, name="step_40", step=40), TORN, WHOLE)).fixes
    assert fix.commands == (
        "mv /ck/step_40 /ck/incomplete-step_40",
        "mv /ck/step_30 /ck/incomplete-step_30",
    )


def test_older_ones_that_were_not_looked_at_are_said() -> None:
    found = finding("checkpoint-incomplete", seen(TORN, older=3))
    assert "3 older ones were not looked at" in found.summary
    assert found.fixes[0].text.startswith("look at the 3 older ones")


def test_the_folder_itself_is_judged_beside_those_in_it() -> None:
    own = replace(TORN, name=".", step=None)
    assert "what lies in /ck itself" in finding("checkpoint-incomplete", seen(WHOLE, own)).summary
    assert is_silent("checkpoint-incomplete", seen(WHOLE, replace(WHOLE, name=".", step=None)))


def test_a_listing_that_was_cut_short_is_unknown() -> None:
    folder = CheckpointFolder("/ck", (WHOLE,), cut="only 7 of its entries were listed in the time for it")
    outcome = run("checkpoint-incomplete", with_facts(cluster(1), "node01", checkpoints=(folder,)))
    assert outcome.outcome == "unknown"
    assert "newer checkpoint" in outcome.reason


def test_a_path_is_said_once() -> None:
    gone = CheckpointFolder("/no/such", Missing("absent", "/no/such: No such file or directory"))
    outcome = run("checkpoint-incomplete", with_facts(cluster(1), "node01", checkpoints=(gone,)))
    assert outcome.reason.count("/no/such") == 1


def test_one_elsewhere_is_said_with_its_path() -> None:
    found = finding("checkpoint-incomplete", seen(replace(TORN, name="/other/step_30"), WHOLE))
    assert "the checkpoint /other/step_30 is incomplete" in found.summary
    assert found.fixes[0].commands == ()
