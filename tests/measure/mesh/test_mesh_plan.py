"""What is measured in groups, and orders that are refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.mesh.mesh_plan import mesh_plan, mesh_plan_faults, mix_calls, mix_sizing
from ncclcheck.measure.mesh.model_shape import model_shape
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.bench_setup import BenchRequest, MeshRequest
from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension
from ncclcheck.model.benchmarks.mesh_bench import MeshCall, MeshPlan
from ncclcheck.model.benchmarks.model_shape import ModelRequest
from tests.measure.mesh.test_model_shape import LLAMA

REQUEST = BenchRequest(sizes_bytes=(1024, 4096), ops=("all_reduce",))
MESH = parse_mesh("pp=2,dp=-1,tp=2")


def plan(world: int = 8, **wish: object) -> MeshPlan:
    found = mesh_plan(REQUEST, replace(MeshRequest(MESH), **wish), world, 5.0)
    assert isinstance(found, MeshPlan)
    return found


def test_stages_hand_on_and_the_others_do_what_was_asked() -> None:
    found = plan()
    assert [(call.dimension, call.op) for call in found.calls if call.size_bytes == 4096] == [
        ("pp", "send_recv"), ("dp", "all_reduce"), ("tp", "all_reduce"),
    ]  # fmt: skip
    assert {call.op for call in plan(ops=("broadcast",)).calls} == {"broadcast"}
    assert {call.dimension for call in plan(dimensions=("tp",)).calls} == {"tp"}


def test_a_model_says_what_is_measured() -> None:
    found = plan(model=ModelRequest(model_shape(LLAMA, "c")))
    assert all(call.per_step for call in found.calls)
    assert {call.dimension for call in found.calls} == {"pp", "dp", "tp"}


@pytest.mark.parametrize(
    ("world", "wish", "words"),
    [
        (6, {}, "has a multiple of 4 ranks"),
        (4, {"dimensions": ("dp",)}, "more than one rank"),
        (
            8,
            {"mesh": parse_mesh("head=8"), "model": ModelRequest(model_shape(LLAMA, "c"))},
            "not known what the model",
        ),
    ],
)
def test_what_cannot_be_measured_is_said(world: int, wish: dict[str, object], words: str) -> None:
    found = mesh_plan(REQUEST, replace(MeshRequest(MESH), **wish), world, 5.0)
    assert isinstance(found, str)
    assert words in found


def test_the_mix_has_the_largest_size_of_each() -> None:
    found = plan(mix=True)
    assert {call.size_bytes for call in mix_calls(found)} == {4096}
    assert len(mix_calls(found)) == 3
    sizing = mix_sizing(found, 4)
    assert (sizing.send_count, sizing.recv_count) == (1024, 3 * 1024)  # only send_recv does not work in place
    assert mix_sizing(plan(), 4).recv_count == 0


def test_a_sound_order_is_followed() -> None:
    assert list(mesh_plan_faults(plan(), 8)) == []


CALL = MeshCall("dp", "all_reduce", 1024)


@pytest.mark.parametrize("broken", [
    MeshPlan(Mesh(()), (CALL,), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 4),)), (CALL,), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8), MeshDimension("dp", 1))), (CALL,), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 0),)), (CALL,), 5.0),
    MeshPlan(Mesh((MeshDimension("d p", 8),)), (replace(CALL, dimension="d p"),), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),), (MeshDimension("ep", 3, ("dp",)),)), (CALL,), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),), (MeshDimension("ep", 2, ("no",)),)), (CALL,), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (CALL,), 5.0, uncounted=("tp",)),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (CALL,), 5.0, uncounted=("dp",) * 20),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (CALL,) * 1025, 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (replace(CALL, dimension="tp"),), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (replace(CALL, size_bytes=1 << 50),), 5.0),
    MeshPlan(Mesh((MeshDimension("dp", 8),)), (replace(CALL, what="\x1b[2J"),), 5.0),
    MeshPlan(Mesh(tuple(MeshDimension(f"d{number}", 1) for number in range(20))), (CALL,), 5.0),
])  # fmt: skip
def test_what_no_node_0_orders_is_refused(broken: MeshPlan) -> None:
    assert list(mesh_plan_faults(broken, 8))


def test_what_of_a_step_is_not_measured_is_named() -> None:
    model = ModelRequest(model_shape(LLAMA, "c"))
    assert plan(model=model).uncounted == ()
    assert plan(model=model, dimensions=("tp",)).uncounted == ("pp", "dp")
    assert plan(model=model, mesh=parse_mesh("head=2,dp=-1,tp=2")).uncounted == ("head",)
    assert plan(dimensions=("tp",)).uncounted == ()  # no model, no step


def test_a_dimension_in_which_the_model_exchanges_nothing_is_counted() -> None:
    """A model without experts in a mesh that has groups of experts."""
    model = ModelRequest(model_shape(LLAMA, "c"))
    assert plan(model=model, mesh=parse_mesh("dp=2,ep=2,tp=2"), dimensions=("dp", "tp")).uncounted == ()
