"""The groups of each dimension: torch's own, and the documented ones of Megatron-LM."""

from __future__ import annotations

from math import prod
from random import Random

import pytest
import torch
from msgspec.structs import replace
from torch.distributed.device_mesh import DeviceMesh

from ncclcheck.measure.mesh.groups import groups_of, names_of, order_of, sized
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension


def groups(text: str, name: str, order: str | None = None) -> list[list[int]]:
    return [list(group) for group in groups_of(parse_mesh(text, order), name)]


def random_mesh(seed: int) -> Mesh:
    random = Random(seed)  # noqa: S311 (a sample, no secret)
    sizes = [random.choice((1, 2, 3, 4, 8)) for _ in range(random.randint(1, 5))]
    return Mesh(tuple(MeshDimension(f"d{number}", size) for number, size in enumerate(sizes)))


@pytest.mark.parametrize("seed", range(200))
def test_they_are_those_of_torchs_device_mesh(seed: int) -> None:
    mesh = random_mesh(seed)
    shape = [dimension.size for dimension in mesh.dimensions]
    ranks = torch.arange(prod(shape)).reshape(shape)
    theirs = DeviceMesh("cpu", ranks, mesh_dim_names=names_of(mesh), _init_backend=False, _rank=0)
    for number, name in enumerate(names_of(mesh)):
        expected = theirs.mesh.swapdims(-1, number).reshape(-1, shape[number]).tolist()
        assert sorted(map(list, groups_of(mesh, name))) == sorted(expected)


def test_they_are_those_that_megatron_documents() -> None:
    """megatron/core/parallel_state.py, initialize_model_parallel: 16 GPUs, tp 2, pp 4."""
    text, order = "tp=2,pp=4,dp=2", "tp-cp-ep-dp-pp"
    assert groups(text, "tp", order) == [[2 * number, 2 * number + 1] for number in range(8)]
    assert sorted(groups(text, "dp", order)) == [
        [0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15],
    ]  # fmt: skip
    assert sorted(groups(text, "pp", order)) == [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]


def test_an_overlaid_dimension_counts_through_those_below_it() -> None:
    assert groups("pp=2,dp=2,tp=2,ep=4@dp,tp", "ep") == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups("dp=2,tp=2,ep=2@dp,tp", "ep") == [[0, 1], [2, 3]]


def test_an_open_size_is_what_is_left() -> None:
    mesh = sized(parse_mesh("dp=-1,tp=4"), 24)
    assert isinstance(mesh, Mesh)
    assert order_of(mesh) == "dp=6,tp=4"


@pytest.mark.parametrize(
    ("text", "world"), [("dp=4,tp=2", 16), ("dp=-1,tp=3", 16), ("dp=2,tp=2,ep=3@dp,tp", 4)]
)
def test_what_does_not_fit_is_said(text: str, world: int) -> None:
    assert isinstance(sized(parse_mesh(text), world), str)


def test_no_rank_is_in_two_groups_of_a_dimension() -> None:
    for seed in range(50):
        mesh = random_mesh(seed)
        for name in names_of(mesh):
            ranks = [rank for group in groups_of(replace(mesh), name) for rank in group]
            assert sorted(ranks) == list(range(prod(dimension.size for dimension in mesh.dimensions)))
