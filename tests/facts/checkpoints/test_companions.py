"""What belongs to other files by its name, whole and with something gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.folder import read_folder
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.checkpoints import Checkpoint
from tests.fact_builders import some
from tests.facts.checkpoints import checkpoint_folders as written


def newest(path: Path) -> Checkpoint:
    return some(read_folder(path, time.monotonic() + 30).checkpoints)[0]


def _experts(folder: Path) -> None:
    written.save_deepspeed(folder, 2)
    for rank in range(2):
        written.save(folder / f"expp_rank_{rank}_mp_rank_00_optim_states.pt")
        for layer in range(2):
            written.save(folder / f"layer_{layer}_expert_{rank}_mp_rank_00_model_states.pt")


def _pipeline(folder: Path) -> None:
    written.save_deepspeed(folder, 2, 2)
    for layer in (0, 2, 3):  # the second one has no parameters
        for rank in range(2):
            written.save(folder / f"layer_{layer:02d}-model_{rank:02d}-model_states.pt")


def _without_index(folder: Path) -> None:
    written.save_sharded(folder)
    (folder / "model.safetensors.index.json").unlink()


def _file_per_rank(folder: Path) -> None:
    for kind in ("model", "optim"):
        for rank in range(4):
            written.save(folder / f"{kind}_world_size_4_rank_{rank}.pt")


def _distributed_optimizer(folder: Path) -> None:
    written.save_megatron(folder, 2, 2)
    for rank in sorted(folder.iterdir()):
        written.save(rank / "distrib_optim.pt")


def _megatron_core(folder: Path) -> None:
    written.save_dcp(folder)
    written.save(folder / "common.pt")
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')


@pytest.mark.parametrize(
    ("write", "gone"),
    [
        (_experts, "layer_1_expert_0_mp_rank_00_model_states.pt"),
        (_experts, "expp_rank_0_mp_rank_00_optim_states.pt"),
        (_pipeline, "layer_02-model_00-model_states.pt"),
        (_pipeline, "layer_03-model_01-model_states.pt"),
        (_without_index, "model-00002-of-00003.safetensors"),
        (_without_index, "model-00003-of-00003.safetensors"),
        (_file_per_rank, "optim_world_size_4_rank_3.pt"),
        (_distributed_optimizer, "mp_rank_01_000/distrib_optim.pt"),
        (_megatron_core, "common.pt"),
        (_megatron_core, "metadata.json"),
    ],
)
def test_a_file_that_the_names_of_others_tell_of_is_missed(
    tmp_path: Path, write: Callable[[Path], None], gone: str
) -> None:
    write(tmp_path / "step_7")
    assert newest(tmp_path).complete is True
    (tmp_path / "step_7" / gone).unlink()
    found = newest(tmp_path)
    assert found.complete is False
    assert found.missing == (gone,)


def test_sharded_weights_in_a_folder_of_lightning_are_not_called_complete_without_its_own_file(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "epoch=1-step=100.ckpt"
    written.save_dcp(folder)
    written.save(folder / "meta.pt")
    assert newest(tmp_path).complete is True
    (folder / "meta.pt").unlink()
    assert isinstance(newest(tmp_path).complete, Missing)


@pytest.mark.parametrize(
    "name",
    [
        "model-00001-of-999999999.safetensors",
        "model_world_size_999999999_rank_0.pt",
        "layer_0_expert_999999_mp_rank_999999_model_states.pt",
        "model-00007-of-00003.safetensors",
    ],
)
def test_a_number_in_a_name_costs_nothing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "step_7"
    folder.mkdir()
    (folder / name).write_bytes(written.safetensors())
    began = time.process_time()
    newest(tmp_path)
    assert time.process_time() - began < 1


def test_two_rules_of_one_kind_name_it_once(tmp_path: Path) -> None:
    _experts(tmp_path / "step_7")
    (tmp_path / "step_7" / "layer_1_expert_0_mp_rank_00_model_states.pt").unlink()
    assert newest(tmp_path).formats == ("deepspeed",)
