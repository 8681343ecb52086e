"""Experts, and layers of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import newest


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


@pytest.mark.parametrize(
    ("write", "gone"),
    [
        (_experts, "layer_1_expert_0_mp_rank_00_model_states.pt"),
        (_experts, "expp_rank_0_mp_rank_00_optim_states.pt"),
        (_pipeline, "layer_02-model_00-model_states.pt"),
        (_pipeline, "layer_03-model_01-model_states.pt"),
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


def test_two_rules_of_one_kind_name_it_once(tmp_path: Path) -> None:
    _experts(tmp_path / "step_7")
    (tmp_path / "step_7" / "layer_1_expert_0_mp_rank_00_model_states.pt").unlink()
    assert newest(tmp_path).formats == ("deepspeed",)
