"""DeepSpeed: model states and optimizer states of each rank."""

from __future__ import annotations

from pathlib import Path

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
