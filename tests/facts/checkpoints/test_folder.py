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


@pytest.mark.parametrize(
    ("file", "text", "names"),
    [
        ("latest", "global_step20\n", "global_step20"),
        ("latest_checkpointed_iteration.txt", "20", "iter_0000020"),
        ("latest_checkpointed_iteration.txt", "release", "release"),
    ],
)
def test_what_names_the_one_to_resume_from_is_read(tmp_path: Path, file: str, text: str, names: str) -> None:
    (tmp_path / file).write_text(text)
    (pointer,) = read(tmp_path).pointers
    assert (pointer.file, pointer.names) == (file, names)


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
