"""What the rules of all kinds share."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.kinds.deepspeed import deepspeed
from ncclcheck.facts.checkpoints.kinds.megatron import megatron
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Rule
from ncclcheck.facts.checkpoints.kinds.transformers import transformers
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks, why_unknown


@pytest.mark.parametrize("how", ["damaged", "not read"])
@pytest.mark.parametrize("rule", [deepspeed, megatron])
def test_a_zip_that_does_not_tell_the_ranks_makes_no_complete_checkpoint(
    tmp_path: Path, rule: Rule, how: str
) -> None:
    if rule is deepspeed:
        written.save_deepspeed(tmp_path, data_ranks=2)
        file = tmp_path / "mp_rank_00_model_states.pt"
    else:
        written.save_megatron(tmp_path, tensor=1, pipeline=2)
        file = tmp_path / "mp_rank_00_000" / "model_optim_rng.pt"
    whole = lacks(rule, tmp_path)
    assert whole == Lacks(whole.kind, named_by=whole.named_by)
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(9_000))
    if how == "damaged":
        data = bytearray(file.read_bytes())
        data[48:60] = b"\xff" * 12
        file.write_bytes(data)
    found = lacks(rule, tmp_path)
    name = str(file.relative_to(tmp_path))
    assert found.missing == ()
    assert [line.startswith(f"{name}: cannot be unpacked") for line in found.damaged] == [True] * (
        how == "damaged"
    )
    assert (
        found.unknown is not None and found.unknown.detail.startswith(f"{name}: what it holds cannot be read")
    ) == (how == "not read")


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (deepspeed, "zero_pp_rank_999999999999_mp_rank_00_optim_states.pt"),
        (deepspeed, f"zero_pp_rank_{'9' * 150}_mp_rank_00_optim_states.pt"),
        (deepspeed, "zero_pp_rank_0_mp_rank_99999999_model_states.pt"),
        (megatron, "mp_rank_999999_999999/model_optim_rng.pt"),
        (transformers, "rng_state_999999999999.pth"),
    ],
)
def test_a_number_in_a_name_costs_neither_time_nor_memory(tmp_path: Path, rule: Rule, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"x")
    assert "more than 200,000 files" in why_unknown(rule, tmp_path)
