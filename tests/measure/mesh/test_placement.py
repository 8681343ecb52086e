"""How groups lie on the nodes, and the order that fixes it."""

from __future__ import annotations

import time

import pytest

from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.measure.mesh.placement import belongs_inside, place
from ncclcheck.model.benchmarks.mesh import DimensionPlacement, MeshPlacement


def placed(text: str, nodes: int, ranks: int) -> MeshPlacement:
    found = place(parse_mesh(text), [rank // ranks for rank in range(nodes * ranks)])
    assert isinstance(found, MeshPlacement)
    return found


def test_the_usual_order_needs_no_other() -> None:
    found = placed("pp=2,dp=4,tp=8", 8, 8)
    assert found.dimensions == (
        DimensionPlacement("pp", 2, 32, 2, 32, 1),
        DimensionPlacement("dp", 4, 16, 4, 16, 1),
        DimensionPlacement("tp", 8, 8, 1, 0, 1),
    )
    assert found.better_order == ""


def test_tensor_parallelism_across_nodes_is_told_with_the_order_that_mends_it() -> None:
    found = placed("tp=8,dp=4,pp=2", 8, 8)
    assert found.dimensions[0] == DimensionPlacement("tp", 8, 8, 8, 8, 1)
    assert found.better_order == "dp=4,pp=2,tp=8"
    assert placed(found.better_order, 8, 8).better_order == ""


def test_what_no_order_mends_is_no_fault_of_the_order() -> None:
    assert placed("dp=4,tp=6", 3, 8).better_order == ""
    assert placed("dp=2,tp=16", 4, 8).better_order == ""


def test_experts_are_kept_near_where_tensor_parallelism_does_not_suffer() -> None:
    found = placed("ep=4,dp=4,tp=2", 4, 8)
    assert found.better_order == "dp=4,ep=4,tp=2"


def test_an_overlaid_dimension_is_placed_too() -> None:
    found = placed("dp=8,tp=2,ep=8@dp,tp", 2, 8)
    assert next(dimension for dimension in found.dimensions if dimension.name == "ep").nodes_spanned == 1


def test_two_dimensions_may_lie_over_one() -> None:
    assert place(parse_mesh("tp=8,pp=2,dp=4,ep=8@dp+tp,etp=2@dp+tp"), [rank // 8 for rank in range(64)])


def test_nodes_may_have_different_numbers_of_ranks() -> None:
    found = place(parse_mesh("dp=2,tp=4"), [0, 0, 1, 1, 1, 1, 2, 2])
    assert isinstance(found, MeshPlacement)
    tensor = found.dimensions[1]
    assert (tensor.nodes_spanned, tensor.least_nodes, tensor.groups_apart) == (2, 1, 2)


def test_a_mesh_that_does_not_fit_says_why() -> None:
    assert place(parse_mesh("dp=2,tp=4"), [0] * 6) == "dp=2,tp=4 has 8 ranks, and the job has 6"


@pytest.mark.parametrize(
    ("name", "inside"), [("tp", True), ("TP", True), ("ep", True), ("dp", False), ("pp", False)]
)
def test_which_dimensions_belong_inside(name: str, inside: bool) -> None:
    assert belongs_inside(name) is inside


def test_sixteen_thousand_ranks_take_no_time() -> None:
    began = time.process_time()
    placed("tp=8,cp=2,pp=16,dp=64,ep=8@dp,tp", 2048, 8)
    assert time.process_time() - began < 3
