"""The rules of each kind, beyond what is held of all kinds in test_folder."""

from __future__ import annotations

import json
import time
import zipfile
from argparse import Namespace
from pathlib import Path

import msgspec
import pytest

from ncclcheck.facts.checkpoints import formats
from ncclcheck.facts.checkpoints.listing import Files, files_of
from tests.facts.checkpoints import checkpoint_folders as written


def files(path: Path) -> Files:
    return files_of(path, time.monotonic() + 30)


def lacks(rule: formats.Rule, path: Path) -> formats.Lacks:
    found = rule(files(path))
    assert found is not None
    return found


def test_a_dcp_file_shorter_than_its_metadata_says_is_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (data,) = tmp_path.glob("*.distcp")
    data.write_bytes(data.read_bytes()[:-1])
    assert "were recorded" in lacks(formats.dcp, tmp_path).damaged[0]


def test_dcp_metadata_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (tmp_path / ".metadata").write_bytes(b"\x80\x04")
    assert lacks(formats.dcp, tmp_path).damaged[0].startswith(".metadata: ")


def test_megatron_knows_its_ranks_by_its_arguments(tmp_path: Path) -> None:
    arguments = Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=1)
    written.save(tmp_path / "mp_rank_00" / "model_optim_rng.pt", {"args": arguments})
    assert lacks(formats.megatron, tmp_path).missing == ("mp_rank_01/model_optim_rng.pt",)


def test_deepspeed_zero_3_has_model_states_of_every_rank(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        for what in ("model", "optim"):
            written.save(tmp_path / f"zero_pp_rank_{rank}_mp_rank_00_{what}_states.pt")
    assert set(lacks(formats.deepspeed, tmp_path).missing) == {
        "zero_pp_rank_2_mp_rank_00_model_states.pt",
        "zero_pp_rank_2_mp_rank_00_optim_states.pt",
    }


@pytest.mark.parametrize("how", ["damaged", "not read"])
@pytest.mark.parametrize("rule", [formats.deepspeed, formats.megatron])
def test_a_zip_that_does_not_tell_the_ranks_makes_no_complete_checkpoint(
    tmp_path: Path, rule: formats.Rule, how: str
) -> None:
    if rule is formats.deepspeed:
        written.save_deepspeed(tmp_path, data_ranks=2)
        file = tmp_path / "mp_rank_00_model_states.pt"
    else:
        written.save_megatron(tmp_path, tensor=1, pipeline=2)
        file = tmp_path / "mp_rank_00_000" / "model_optim_rng.pt"
    assert lacks(rule, tmp_path) == formats.Lacks(lacks(rule, tmp_path).kind)
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
    assert found.unknown.startswith(f"{name}: what it holds cannot be read") == (how == "not read")


def test_a_hole_in_the_random_states_of_the_trainer_is_found(tmp_path: Path) -> None:
    for name in ("trainer_state.json", "rng_state_0.pth", "rng_state_2.pth"):
        (tmp_path / name).write_text("{}")
    assert lacks(formats.transformers, tmp_path).missing == ("rng_state_1.pth",)


def test_the_forms_of_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "COMPLETE").touch()
    (tmp_path / "a.bin").write_bytes(b"123")
    forms = [
        ["a.bin", "b.bin"],
        [{"path": "a.bin", "bytes": 3}, {"path": "b.bin", "bytes": 3}],
        {"files": {"a.bin": 3, "b.bin": 4}},
        {"shards": {"a.bin": {"size": 3}, "b.bin": {"size": 4}}, "version": 2},
        {"a.bin": 3, "b.bin": 3, "version": 2},
    ]
    for form in forms:
        (tmp_path / "manifest.json").write_text(json.dumps(form))
        found = lacks(formats.manifest, tmp_path)
        assert (found.missing, found.damaged) == (("b.bin",), ()), form
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {"a.bin": 4}}))
    assert lacks(formats.manifest, tmp_path).damaged == ("a.bin: 3 bytes, 4 were recorded",)


def test_a_manifest_that_lists_nothing_is_not_called_complete(tmp_path: Path) -> None:
    (tmp_path / "COMPLETE").touch()
    (tmp_path / "manifest.json").write_text("{}")
    assert lacks(formats.manifest, tmp_path).unknown


def test_a_broken_index_is_damaged(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{")
    assert "weight_map" in lacks(formats.index, tmp_path).damaged[0]


@pytest.mark.parametrize(
    ("rule", "name"), [(formats.index, "model.safetensors.index.json"), (formats.manifest, "manifest.json")]
)
def test_json_of_endless_values_costs_neither_time_nor_memory(
    tmp_path: Path, rule: formats.Rule, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(data: bytes) -> object:
        raise AssertionError(f"{len(data)} bytes were decoded")

    monkeypatch.setattr(msgspec.json, "decode", decode)
    for values in (b"[],", b"1,", b'{"a":'):
        (tmp_path / name).write_bytes(b"[" + values * formats.MOST_VALUES + b"[]]")
        assert "4,000,000 values" in lacks(rule, tmp_path).unknown


def test_json_that_is_too_long_is_not_called_damaged(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors.index.json").open("wb") as file:
        file.truncate(formats.JSON_BYTES + 1)
    assert "longer than 64 MiB" in lacks(formats.index, tmp_path).unknown


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (formats.deepspeed, "zero_pp_rank_999999999999_mp_rank_00_optim_states.pt"),
        (formats.deepspeed, f"zero_pp_rank_{'9' * 150}_mp_rank_00_optim_states.pt"),
        (formats.deepspeed, "zero_pp_rank_0_mp_rank_99999999_model_states.pt"),
        (formats.megatron, "mp_rank_999999_999999/model_optim_rng.pt"),
        (formats.transformers, "rng_state_999999999999.pth"),
    ],
)
def test_a_number_in_a_name_costs_neither_time_nor_memory(
    tmp_path: Path, rule: formats.Rule, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"x")
    assert "more than 200,000 files" in lacks(rule, tmp_path).unknown


def test_a_number_that_is_saved_costs_neither_time_nor_memory(tmp_path: Path) -> None:
    written.save(tmp_path / "mp_rank_00_model_states.pt", {"dp_world_size": 10**6, "mp_world_size": 10**6})
    (tmp_path / "zero_pp_rank_0_mp_rank_00_optim_states.pt").write_bytes(b"x")
    assert "more than 200,000 files" in lacks(formats.deepspeed, tmp_path).unknown
