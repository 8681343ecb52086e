"""What to measure in the groups of a mesh: the calls of a model, or collectives that usually run there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.measure.busbw import Sizing
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.mesh.groups import group_sizes, order_of, sized
from ncclcheck.measure.mesh.model_calls import step_calls, unruled
from ncclcheck.model.bench_setup import BenchRequest, MeshRequest
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.benchmarks.mesh_bench import MeshCall, MeshPlan
from ncclcheck.model.benchmarks.op import Op

MOST_CALLS, MOST_DIMENSIONS, MOST_SIZE_BYTES = 1024, 12, 1 << 44
_LONGEST_NAME, _LONGEST_WHAT, _MOST_PER_STEP = 32, 100, 1 << 31
# What usually runs there where neither --ops nor --model says: stages hand on, experts exchange all with all.
_USUAL_OPS: dict[str, tuple[Op, ...]] = {
    "pp": ("send_recv",),
    "pipe": ("send_recv",),
    "cp": ("send_recv",),
    "ep": ("all_to_all",),
    "expert": ("all_to_all",),
}


def mesh_plan(request: BenchRequest, wish: MeshRequest, world: int, budget_s: float) -> MeshPlan | str:
    """Return what is measured with so many ranks; or why nothing can be."""
    mesh = sized(wish.mesh, world)
    if isinstance(mesh, str):
        return mesh
    sizes = {name: size for name, size in group_sizes(mesh).items() if size > 1}
    names = [name for name in sizes if name in wish.dimensions or not wish.dimensions]
    if not names:
        which = f"none of {', '.join(wish.dimensions)}" if wish.dimensions else "no dimension"
        return f"{which} of {order_of(mesh)} has more than one rank, so nothing is exchanged"
    uncounted: tuple[str, ...] = ()
    if wish.model is not None:
        step = step_calls(wish.model, mesh)
        calls = tuple(call for call in step if call.dimension in names)
        missed = {*unruled(mesh), *(call.dimension for call in step if call.dimension not in names)}
        uncounted = tuple(name for name in sizes if name in missed)
        if not calls:
            return f"it is not known what the model exchanges in {', '.join(names)}: leave out --model, and give --ops"
    else:
        calls = tuple(
            MeshCall(name, op, size)
            for name in names
            for op in ops_of(name, request, wish)
            for size in request.sizes_bytes
        )
    return MeshPlan(mesh, calls, budget_s, wish.mix, uncounted)


def ops_of(dimension: str, request: BenchRequest, wish: MeshRequest) -> tuple[Op, ...]:
    """Return what is measured in the dimension where no model says it."""
    return wish.ops or _USUAL_OPS.get(dimension.lower(), request.ops)


def mix_calls(plan: MeshPlan) -> tuple[MeshCall, ...]:
    """Return what is mixed: of each dimension and collective the largest size, or each call of the model."""
    chosen: dict[tuple[str, Op, str], MeshCall] = {}
    for call in plan.calls:
        key = (call.dimension, call.op, call.what)
        if key not in chosen or chosen[key].size_bytes < call.size_bytes:
            chosen[key] = call
    return tuple(chosen.values())


def sizing_of(call: MeshCall, mesh: Mesh, element_bytes: int) -> Sizing:
    """Return the element counts of the call in one group."""
    return COLLECTIVES[call.op].sizing(call.size_bytes, element_bytes, group_sizes(mesh)[call.dimension])


def mesh_sizings(plan: MeshPlan, element_bytes: int) -> Sequence[tuple[Sizing, bool]]:
    """Return the sizing of every call, each with whether it works in place."""
    return [(sizing_of(call, plan.mesh, element_bytes), COLLECTIVES[call.op].in_place) for call in plan.calls]


def mix_sizing(plan: MeshPlan, element_bytes: int) -> Sizing:
    """Return the elements that the buffers of all mixed calls take together; none without a mix."""
    calls = mix_calls(plan) if plan.mix else ()
    sizings = [(sizing_of(call, plan.mesh, element_bytes), COLLECTIVES[call.op].in_place) for call in calls]
    send = sum(0 if in_place else sizing.send_count for sizing, in_place in sizings)
    recv = sum(sizing.recv_count for sizing, _ in sizings)
    return Sizing(send, recv, 0, 0)


def mesh_plan_faults(plan: MeshPlan, world: int) -> Iterator[str]:
    """Yield why no node 0 would order this: a plan from the network is checked before anything is done."""
    mesh = plan.mesh
    names = [dimension.name for dimension in (*mesh.dimensions, *mesh.overlaid)]
    sizes = [dimension.size for dimension in (*mesh.dimensions, *mesh.overlaid)]
    if not 0 < len(names) == len(set(names)) <= MOST_DIMENSIONS or not all(
        0 < size <= world for size in sizes
    ):
        yield "a mesh whose dimensions are none"
        return
    if not all(name.isidentifier() and len(name) <= _LONGEST_NAME for name in names):
        yield "a dimension whose name is none"
    if any(not dimension.over or not set(dimension.over) <= set(names) for dimension in mesh.overlaid):
        yield "a dimension that lies over none"
    elif sized(mesh, world) != mesh:
        yield f"a mesh that does not fit {world} ranks"
    if len(plan.uncounted) > len(names) or not set(plan.uncounted) <= set(names):
        yield "a dimension without calls that the mesh has not"
    if not 0 < len(plan.calls) <= MOST_CALLS:
        yield f"{len(plan.calls)} calls in groups"
    if not all(_is_sound(call, names) for call in plan.calls):
        yield "a call in groups out of bounds"


def _is_sound(call: MeshCall, names: Sequence[str]) -> bool:
    return (
        call.dimension in names
        and 0 < call.size_bytes <= MOST_SIZE_BYTES
        and 0 <= call.per_step <= _MOST_PER_STEP
        and len(call.what) <= _LONGEST_WHAT
        and (call.what.isprintable())
    )
