"""Sets of files whose names tell how many they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fact_builders import some
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import newest, read


def _without_index(folder: Path) -> None:
    written.save_sharded(folder)
    (folder / "model.safetensors.index.json").unlink()


def _file_per_rank(folder: Path) -> None:
    for kind in ("model", "optim"):
        for rank in range(4):
            written.save(folder / f"{kind}_world_size_4_rank_{rank}.pt")


@pytest.mark.parametrize(
    ("write", "gone"),
    [
        (_without_index, "model-00002-of-00003.safetensors"),
        (_without_index, "model-00003-of-00003.safetensors"),
        (_file_per_rank, "optim_world_size_4_rank_3.pt"),
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


@pytest.mark.parametrize(
    ("ranks_there", "missing"),
    [((0, 1, 3), 2), ((0, 8, 24), 16), ((0, 1), None), ((0, 8, 16), None), ((8, 9), None)],
)
def test_a_hole_in_the_ranks_is_doubted(
    tmp_path: Path, ranks_there: tuple[int, ...], missing: int | None
) -> None:
    for rank in ranks_there:
        written.save(tmp_path / "step-10" / f"rank_{rank}.pt")
        written.save(tmp_path / f"step9_rank{rank}.pt")
    for found, name in zip(
        some(read(tmp_path).checkpoints), (f"rank_{missing}", f"step9_rank{missing}"), strict=True
    ):
        assert found.complete is True if missing is None else f"{name}.pt is not there" in str(found.complete)
