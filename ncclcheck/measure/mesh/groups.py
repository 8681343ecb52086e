"""Which ranks form the groups of each dimension of a mesh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from msgspec.structs import replace

from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension


def sized(mesh: Mesh, world: int) -> Mesh | str:
    """Return the mesh with every size known; or why it does not fit `world` ranks."""
    known = prod(dimension.size for dimension in mesh.dimensions if dimension.size)
    is_open = any(not dimension.size for dimension in mesh.dimensions)
    if (is_open and world % known) or (not is_open and known != world):
        return f"{order_of(mesh)} has {'a multiple of ' if is_open else ''}{known} ranks, and the job has {world}"
    dimensions = tuple(
        dimension if dimension.size else replace(dimension, size=world // known)
        for dimension in mesh.dimensions
    )
    whole = replace(mesh, dimensions=dimensions)
    for dimension in mesh.overlaid:
        below = _below(whole, dimension)
        if below % dimension.size:
            return f"{dimension.name}={dimension.size} does not divide the {below} ranks of {'+'.join(dimension.over)}"
    return whole


def groups_of(mesh: Mesh, name: str) -> Iterator[Sequence[int]]:
    """Yield the groups of the dimension, each in the order of its ranks; all sizes have to be known.

    Those of torch's DeviceMesh (torch/distributed/device_mesh.py), and of Megatron-LM's RankGenerator where the order
    is its own (megatron/core/parallel_state.py). An overlaid dimension counts through the dimensions below it as if
    they were one, the last fastest: so does torchtitan's ep (torchtitan/distributed/parallel_dims.py).
    """
    steps = _steps(mesh)
    overlaid = next((dimension for dimension in mesh.overlaid if dimension.name == name), None)
    inside = overlaid.over if overlaid is not None else (name,)
    offsets = _offsets(
        mesh,
        [name_of_dimension for name_of_dimension in names_of(mesh) if name_of_dimension in inside],
        steps,
    )
    size = len(offsets) if overlaid is None else overlaid.size
    bases = _offsets(
        mesh,
        [name_of_dimension for name_of_dimension in names_of(mesh) if name_of_dimension not in inside],
        steps,
    )
    for base in bases:
        for first in range(0, len(offsets), size):
            yield [base + offset for offset in offsets[first : first + size]]


def group_sizes(mesh: Mesh) -> dict[str, int]:
    """Return the ranks of a group of each dimension; all sizes have to be known."""
    return {dimension.name: dimension.size for dimension in (*mesh.dimensions, *mesh.overlaid)}


def names_of(mesh: Mesh) -> tuple[str, ...]:
    """Return the names in torch's order, without those that lie over others."""
    return tuple(dimension.name for dimension in mesh.dimensions)


def order_of(mesh: Mesh) -> str:
    """Return the mesh as `--mesh` takes it."""
    parts = [f"{dimension.name}={dimension.size or -1}" for dimension in mesh.dimensions]
    parts += [f"{dimension.name}={dimension.size}@{'+'.join(dimension.over)}" for dimension in mesh.overlaid]
    return ",".join(parts)


def _below(mesh: Mesh, overlaid: MeshDimension) -> int:
    return prod(dimension.size for dimension in mesh.dimensions if dimension.name in overlaid.over)


def _steps(mesh: Mesh) -> dict[str, int]:
    """Return by how much the rank grows with each dimension's index."""
    steps: dict[str, int] = {}
    step = 1
    for dimension in reversed(mesh.dimensions):
        steps[dimension.name] = step
        step *= dimension.size
    return steps


def _offsets(mesh: Mesh, names: Sequence[str], steps: dict[str, int]) -> list[int]:
    sizes = {dimension.name: dimension.size for dimension in mesh.dimensions}
    ranges = [range(0, sizes[name] * steps[name], steps[name]) for name in names]
    return [sum(place) for place in product(*ranges)]
