"""A folder of checkpoints: each kind whole and with something gone, and what names the one to resume from."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.facts.checkpoints.folder import LOOKED_INTO, read_folder
from ncclcheck.facts.checkpoints.kinds.dcp import dcp
from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from tests.fact_builders import some
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import newest, read

WRITERS: dict[str, Callable[[Path], None]] = {
    "dcp": written.save_dcp,
    "deepspeed": lambda folder: written.save_deepspeed(folder, data_ranks=4, model_ranks=2),
    "megatron": lambda folder: written.save_megatron(folder, 2, 3),
    "index": written.save_sharded,
    "manifest": written.save_with_manifest,
}


@pytest.fixture(params=WRITERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(kind: str, tmp_path: Path) -> Path:
    """A folder with one checkpoint of the kind."""
    WRITERS[kind](tmp_path / "step_20")
    return tmp_path


def test_a_whole_one_is_complete(folder: Path, kind: str) -> None:
    found = newest(folder)
    assert (found.name, found.step, found.complete) == ("step_20", 20, True)
    assert found.formats == (kind,)
    assert found.missing == found.damaged == ()


def test_it_may_be_given_itself(folder: Path) -> None:
    found = newest(folder / "step_20")
    assert (found.name, found.complete) == (".", True)


def test_without_any_one_of_its_files_it_is_not_complete(folder: Path, kind: str) -> None:
    """All but the last of its numbered files where nothing else tells how many there were."""
    place = folder / "step_20"
    files = sorted(path for path in place.rglob("*") if path.is_file())
    if kind == "megatron":
        files = files[:-1]
    for file in files:
        if file.name in ("model.safetensors.index.json", "manifest.json") or len(files) == 1:
            continue
        aside = folder.parent / "aside"
        file.rename(aside)
        found = newest(folder)
        aside.rename(file)
        assert found.complete is False, file
        assert str(file.relative_to(place)) in found.missing, file


def test_a_file_that_was_cut_off_is_damaged(folder: Path) -> None:
    place = folder / "step_20"
    largest = max((path for path in place.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    os.truncate(largest, largest.stat().st_size // 2)
    found = newest(folder)
    assert found.complete is False
    assert found.damaged_count == 1
    assert str(largest.relative_to(place)) in found.damaged[0]


def test_the_newest_is_the_one_with_the_highest_step(tmp_path: Path) -> None:
    for step in (90, 100, 9):
        written.save_sharded(tmp_path / f"checkpoint-{step}")
    assert [found.step for found in some(read(tmp_path).checkpoints)] == [100, 90, 9]


def test_of_many_the_newest_are_looked_into_and_the_others_counted(tmp_path: Path) -> None:
    for step in range(LOOKED_INTO + 4):
        written.save_with_manifest(tmp_path / f"step-{step}")
    found = read(tmp_path)
    assert len(some(found.checkpoints)) == LOOKED_INTO
    assert found.older == 4


def test_single_files_are_checkpoints_too(tmp_path: Path) -> None:
    written.save(tmp_path / "epoch=1-step=100.ckpt")
    written.save(tmp_path / "epoch=2-step=200-v1.ckpt")
    os.truncate(tmp_path / "epoch=2-step=200-v1.ckpt", 900)
    first, second = some(read(tmp_path).checkpoints)
    assert (first.step, first.complete, second.step, second.complete) == (200, False, 100, True)
    assert "was cut off" in first.damaged[0]


@pytest.mark.parametrize("name", ["step_30.tmp", "tmp-checkpoint-30"])
def test_a_name_that_says_unfinished_is_believed(tmp_path: Path, name: str) -> None:
    written.save_sharded(tmp_path / name)
    found = newest(tmp_path)
    assert (found.step, found.complete) == (30, False)
    assert "rename" in found.missing[0]


def test_a_link_names_one_too_also_where_it_leads_nowhere(tmp_path: Path) -> None:
    written.save_sharded(tmp_path / "step_20")
    (tmp_path / "latest").symlink_to("step_20")
    (tmp_path / "best").symlink_to(tmp_path / "gone")
    (tmp_path / "tokenizer.json").symlink_to("/etc/hostname")
    (tmp_path / "circle").symlink_to("circle")
    found = read(tmp_path)
    assert [pointer.is_there for pointer in found.pointers] == [False, True]
    assert [(pointer.file, pointer.names) for pointer in found.pointers] == [
        ("best", "gone"),
        ("latest", "step_20"),
    ]
    assert len(some(found.checkpoints)) == 1


def test_a_folder_of_something_else_is_unknown_and_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "manifest.json").write_text('{"version": 3}')
    found = read(tmp_path)
    assert found.checkpoints == ()
    assert found.unknown == 1


def test_what_may_not_be_listed_is_not_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may list everything")
    written.save_sharded(tmp_path / "step_20")
    (tmp_path / "step_20").chmod(0)
    assert isinstance(newest(tmp_path).complete, Missing)


def test_where_the_time_is_over_nothing_is_called_complete(tmp_path: Path) -> None:
    written.save_deepspeed(tmp_path / "global_step20", 4)
    (found,) = some(read_folder(tmp_path / "global_step20", time.monotonic() - 1).checkpoints)
    assert found.complete is not True


def test_deepspeed_knows_its_ranks_though_the_last_file_is_gone(tmp_path: Path) -> None:
    written.save_deepspeed(tmp_path / "global_step20", 4)
    (tmp_path / "global_step20" / "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt").unlink()
    assert newest(tmp_path).missing == ("bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt",)


def test_a_pipe_in_the_place_of_a_pointer_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "latest")
    written.save(tmp_path / "step5.pt")
    found = read(tmp_path)
    assert found.pointers == ()
    assert newest(tmp_path).name == "step5.pt"


def test_a_name_of_any_length_fits_a_report(tmp_path: Path) -> None:
    weights = {str(number): "x" * 200_000 + str(number) for number in range(20)}
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    found = newest(tmp_path)
    assert (found.complete, found.missing_count) == (False, 20)
    assert len(encode(found)) < 50_000


def test_metadata_that_takes_too_long_is_not_called_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path / "step2")
    (tmp_path / "step2" / ".metadata").write_bytes(b"\x80\x02" + b"]" * 3_000_000 + b".")
    files = files_of(tmp_path / "step2", time.monotonic() + 30)
    found = dcp(replace(files, until=time.monotonic() - 1))
    assert found is not None
    assert found.unknown is not None
    assert "there is time for it" in found.unknown.detail


@pytest.mark.parametrize("below", [".", "mp_rank_00", "a/b"])
def test_a_newest_one_without_files_is_incomplete(tmp_path: Path, below: str) -> None:
    written.save_sharded(tmp_path / "checkpoint-500")
    (tmp_path / "checkpoint-1000" / below).mkdir(parents=True)
    found = newest(tmp_path)
    assert (found.name, found.complete) == ("checkpoint-1000", False)


def test_one_of_another_kind_than_any_known_is_not_passed_over(tmp_path: Path) -> None:
    written.save_sharded(tmp_path / "llama-step-100")
    for name in ("llama-step-200", "logs-300"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").touch()
    found = read(tmp_path)
    assert [checkpoint.name for checkpoint in some(found.checkpoints)] == ["llama-step-200", "llama-step-100"]
    assert isinstance(some(found.checkpoints)[0].complete, Missing)
    assert found.unknown == 1


def test_where_none_of_the_newest_is_complete_older_ones_are_looked_into(tmp_path: Path) -> None:
    for step in range(LOOKED_INTO + 4):
        written.save_with_manifest(tmp_path / f"step-{step}")
        if step > 1:
            (tmp_path / f"step-{step}" / "COMPLETE").unlink()
    found = read(tmp_path)
    assert [checkpoint.name for checkpoint in some(found.checkpoints) if checkpoint.complete is True] == [
        "step-1"
    ]
    assert found.older == 1


def test_what_a_pointer_names_is_looked_into_wherever_it_is(tmp_path: Path) -> None:
    for step in range(LOOKED_INTO + 4):
        written.save_with_manifest(tmp_path / "here" / f"step-{step}")
    written.save_sharded(tmp_path / "elsewhere" / "step-7")
    (tmp_path / "here" / "latest").write_text("step-1")
    (tmp_path / "here" / "latest_checkpoint").write_text(str(tmp_path / "elsewhere" / "step-7"))
    names = [checkpoint.name for checkpoint in some(read(tmp_path / "here").checkpoints)]
    assert {"step-1", str(tmp_path / "elsewhere" / "step-7")} < set(names)
    assert names[0] == f"step-{LOOKED_INTO + 3}"


def test_parts_of_one_checkpoint_are_no_rivals(tmp_path: Path) -> None:
    """Accelerate's folder, given itself: shards of the model and of the optimizer."""
    for part in ("pytorch_model_fsdp_0", "optimizer_0"):
        written.save_dcp(tmp_path / part)
    assert [(found.name, found.complete) for found in some(read(tmp_path).checkpoints)] == [(".", True)]
    (tmp_path / "optimizer_0" / ".metadata").unlink()
    (found,) = some(read(tmp_path).checkpoints)
    assert found.missing == ("optimizer_0/.metadata",)


def test_a_checkpoint_of_the_trainer_that_is_given_itself_is_looked_into_below(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text("{}")
    (tmp_path / "latest").write_text("global_step500")
    written.save_deepspeed(tmp_path / "global_step500", 4)
    assert [(found.name, found.complete) for found in some(read(tmp_path).checkpoints)] == [(".", True)]
    lost = tmp_path / "global_step500" / "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt"
    lost.unlink()
    assert newest(tmp_path).missing == (str(lost.relative_to(tmp_path)),)


def test_a_finished_training_has_checkpoints_and_is_one_itself(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "checkpoint-500", tmp_path / "checkpoint-1000"):
        written.save_sharded(folder)
        (folder / "trainer_state.json").write_text("{}")
    (tmp_path / "runs").mkdir()
    (tmp_path / "checkpoint-1000" / "model-00002-of-00003.safetensors").unlink()
    found = [(checkpoint.name, checkpoint.complete) for checkpoint in some(read(tmp_path).checkpoints)]
    assert found == [("checkpoint-1000", False), ("checkpoint-500", True), (".", True)]


def test_weights_and_a_configuration_are_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_text("version https://git-lfs.github.com/spec/v1")
    found = newest(tmp_path)
    assert (found.name, found.complete) == (".", False)


def test_a_file_may_be_given_itself(tmp_path: Path) -> None:
    written.save(tmp_path / "step-9.pt")
    assert [(found.name, found.complete) for found in some(read(tmp_path / "step-9.pt").checkpoints)] == [
        (".", True)
    ]


def test_many_other_entries_hide_nothing(tmp_path: Path) -> None:
    for number in range(21_000):
        (tmp_path / f"{number}.png").touch()
    written.save(tmp_path / "step-5.pt")
    assert newest(tmp_path).name == "step-5.pt"


def test_a_folder_for_each_model_of_diffusers_is_a_part(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    for part in ("unet", "vae"):
        written.save_sharded(tmp_path / part)
    (tmp_path / "vae" / "model-00002-of-00003.safetensors").unlink()
    assert [(found.name, found.complete) for found in some(read(tmp_path).checkpoints)] == [(".", False)]


def test_where_the_time_was_over_before_the_newest_it_is_said(tmp_path: Path) -> None:
    written.save_sharded(tmp_path / "step-1")
    found = read_folder(tmp_path, time.monotonic() + 30)
    assert found.cut == ""
    assert read_folder(tmp_path, time.monotonic() - 1).cut


def test_links_beside_checkpoints_are_not_followed(tmp_path: Path) -> None:
    written.save_with_manifest(tmp_path / "step-1")
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "step-1" / "data").symlink_to("../outside")
    (tmp_path / "data").symlink_to("outside")
    assert [found.name for found in some(read(tmp_path).checkpoints)] == ["step-1"]
