"""Megatron-LM: a folder per rank, and what is beside the weights."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.kinds.megatron import megatron
from tests.fact_builders import some
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks, newest, read


def test_megatron_knows_its_ranks_by_its_arguments(tmp_path: Path) -> None:
    arguments = Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=1)
    written.save(tmp_path / "mp_rank_00" / "model_optim_rng.pt", {"args": arguments})
    assert lacks(megatron, tmp_path).missing == ("mp_rank_01/model_optim_rng.pt",)


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


def test_its_folder_is_found_by_its_tracker(tmp_path: Path) -> None:
    written.save_megatron(tmp_path / "iter_0000001", 1, 1)
    _megatron_core(tmp_path / "iter_0000002")
    _megatron_core(tmp_path / "step_3")  # NeMo's, for one
    found = [checkpoint.named_by for checkpoint in some(read(tmp_path).checkpoints)]
    assert found == ["", "latest_checkpointed_iteration.txt", "latest_checkpointed_iteration.txt"]
