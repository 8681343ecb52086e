"""DeepSpeed: model states and optimizer states of each rank."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ncclcheck.facts.checkpoints.kinds.deepspeed import deepspeed
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks, why_unknown


def test_deepspeed_zero_3_has_model_states_of_every_rank(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        for what in ("model", "optim"):
            written.save(tmp_path / f"zero_pp_rank_{rank}_mp_rank_00_{what}_states.pt")
    assert set(lacks(deepspeed, tmp_path).missing) == {
        "zero_pp_rank_2_mp_rank_00_model_states.pt",
        "zero_pp_rank_2_mp_rank_00_optim_states.pt",
    }


def test_a_number_that_is_saved_costs_neither_time_nor_memory(tmp_path: Path) -> None:
    written.save(tmp_path / "mp_rank_00_model_states.pt", {"dp_world_size": 10**6, "mp_world_size": 10**6})
    (tmp_path / "zero_pp_rank_0_mp_rank_00_optim_states.pt").write_bytes(b"x")
    assert "more than 200,000 files" in why_unknown(deepspeed, tmp_path)


def save_model_states(folder: Path, **told: object) -> None:
    """What rank 0 writes first, of a job of two ranks."""
    written.save(
        folder / "mp_rank_00_model_states.pt",
        {"module": {}, "optimizer": None, "dp_world_size": 2, "mp_world_size": 1, **told},
    )


@pytest.mark.parametrize(
    ("told", "prefix"),
    [
        ({"param_shapes": [{"w": torch.Size([3])}], "ds_config": {"zero_optimization": {"stage": 2}}}, ""),
        ({"ds_config": {"zero_optimization": {"stage": 1}}}, ""),
        ({"param_shapes": [{"w": torch.Size([3])}], "ds_config": {"bf16": {"enabled": True}}}, "bf16_"),
    ],
)
def test_zero_without_any_optimizer_states_lacks_all_of_them(
    tmp_path: Path, told: dict[str, object], prefix: str
) -> None:
    save_model_states(tmp_path, **told)
    assert lacks(deepspeed, tmp_path).missing == tuple(
        f"{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(2)
    )


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"param_shapes": None, "ds_config": {"zero_optimization": {"stage": 2}}},  # without an optimizer
        {"ds_config": {"zero_optimization": {"stage": 0}}},
    ],
)
def test_without_zero_there_are_none(tmp_path: Path, told: dict[str, object]) -> None:
    save_model_states(tmp_path, **told)
    assert lacks(deepspeed, tmp_path).missing == ()


def test_its_folder_is_found_by_the_file_latest(tmp_path: Path) -> None:
    written.save_deepspeed(tmp_path / "global_step1", 1)
    assert lacks(deepspeed, tmp_path / "global_step1").named_by == "latest"
    assert lacks(deepspeed, tmp_path).named_by == ""
