"""`bench --mesh` and the options beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.benchmarks.mesh_request import given_mesh, mesh_request
from ncclcheck.model.errors import UsageError
from tests.measure.mesh.test_model_shape import LLAMA


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    return str(file)


def test_all_options_together(config: str) -> None:
    given = {"mesh": "pp=2,dp=4,tp=8", "dims": (("tp",), ("dp", "tp")), "mix": True, "model": config, "batch": 2,
             "strategy": "megatron"}  # fmt: skip
    found = mesh_request(given, ())
    assert found is not None
    assert (found.dimensions, found.mix) == (("tp", "dp"), True)
    assert found.model is not None
    assert (found.model.shape.layers, found.model.batch, found.model.sequence) == (32, 2, 4096)
    assert found.model.strategy == "megatron"


def test_without_a_mesh_there_is_nothing() -> None:
    assert mesh_request({}, ("all_reduce",)) is None
    assert given_mesh({}) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mix": True}, "--mix is for the groups of --mesh"),
        ({"model": "c.json"}, "--model is for the groups of --mesh"),
        ({"mesh_order": "tp-dp"}, "add --mesh"),
        ({"mesh": "dp=2", "batch": 3}, "--batch says how the model is trained"),
        ({"mesh": "dp=2", "dims": (("tp",),)}, "--mesh has dp"),
    ],
)
def test_contradictions_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mesh_request(given, ())


@pytest.mark.parametrize("text", ["no json", "[1]", "{}", "[" * 200_000, '{"a":' * 100_000, " " * (1 << 20)])
def test_a_file_that_is_no_model_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"config\.json"):
        mesh_request({"mesh": "dp=2", "model": str(file)}, ())


def test_a_model_has_collectives_of_its_own(config: str) -> None:
    with pytest.raises(UsageError, match="--ops and --model"):
        mesh_request({"mesh": "dp=2", "model": config}, ("all_reduce",))


def test_an_empty_mesh_is_refused() -> None:
    with pytest.raises(UsageError, match="is no dimension"):
        given_mesh({"mesh": ""})
