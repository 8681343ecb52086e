"""Layers of a pipeline: the parameters that the model states name have files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import newest

LAYERS = (0, 2, 3, 4, 5, 7)  # functions of the pipeline have no file


def _pipeline(folder: Path, *, named: Sequence[int] = (), part: str = "-model_00") -> None:
    written.save_deepspeed(folder, 2)
    shapes = OrderedDict((f"{layer}.dense.weight", torch.Size([8])) for layer in named)
    shapes["tied_modules.embed.weight"] = torch.Size([8])
    state = {"module": None, "dp_world_size": 2, "mp_world_size": 1}
    written.save(folder / "mp_rank_00_model_states.pt", state | ({"param_shapes": [shapes]} if named else {}))
    for layer in LAYERS:
        numbers = 64 if layer in (2, 3, 4, 5) else 4096
        written.save(folder / f"layer_{layer:02d}{part}-model_states.pt", {"w": torch.ones(numbers)})


@pytest.mark.parametrize("gone", LAYERS)
@pytest.mark.parametrize("part", ["-model_00", ""])
def test_a_layer_whose_parameters_are_named_is_missed(tmp_path: Path, gone: int, part: str) -> None:
    _pipeline(tmp_path / "global_step7", named=LAYERS, part=part)
    assert newest(tmp_path).complete is True
    name = f"layer_{gone:02d}{part}-model_states.pt"
    (tmp_path / "global_step7" / name).unlink()
    assert newest(tmp_path).missing == (name,)


def test_without_names_a_layer_missing_among_those_of_its_size_is_doubted(tmp_path: Path) -> None:
    folder = tmp_path / "global_step7"
    _pipeline(folder)
    for layer in range(8, 13):
        written.save(folder / f"layer_{layer:02d}-model_00-model_states.pt", {"w": torch.ones(999)})
    assert newest(tmp_path).complete is True
    (folder / "layer_10-model_00-model_states.pt").unlink()
    assert "layer_10-model_00" in str(newest(tmp_path).complete)


def test_layers_at_equal_distances_are_not_doubted(tmp_path: Path) -> None:
    folder = tmp_path / "global_step7"
    written.save_deepspeed(folder, 2)
    for layer in range(0, 12, 2):
        written.save(folder / f"layer_{layer:02d}-model_00-model_states.pt", {"w": torch.ones(9)})
    assert newest(tmp_path).complete is True
