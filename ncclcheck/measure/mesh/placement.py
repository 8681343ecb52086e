"""How the groups of a mesh lie on the nodes, and the order under which the talkative ones stay inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.measure.mesh.groups import groups_of, names_of, order_of, sized
from ncclcheck.model.benchmarks.mesh import DimensionPlacement, Mesh, MeshPlacement

# The dimensions that exchange data in every layer, in the order in which they should be near: tensor parallelism first
# (Megatron-LM README; torchtitan#286: "Should be PP DP TP. This matters for NUMA across nodes").
_INSIDE = (("tp", "tensor", "mp", "etp"), ("ep", "expert"))


def place(mesh: Mesh, nodes: Sequence[int]) -> MeshPlacement | str:
    """Return the placement of a mesh on ranks of which rank i is on node `nodes[i]`; or why the mesh does not fit."""
    whole = sized(mesh, len(nodes))
    if isinstance(whole, str):
        return whole
    placements = _placements(whole, nodes)
    return MeshPlacement(order_of(whole), mesh.source, placements, _better(whole, placements, nodes))


def belongs_inside(name: str) -> bool:
    """Return whether the groups of that dimension should not span nodes where that can be avoided."""
    return any(name.lower() in names for names in _INSIDE)


def _placements(mesh: Mesh, nodes: Sequence[int]) -> tuple[DimensionPlacement, ...]:
    counts = sorted(Counter(nodes).values(), reverse=True)
    return tuple(
        _placed(mesh, dimension.name, nodes, counts)
        for dimension in (*mesh.dimensions, *mesh.overlaid)
        if dimension.size > 1
    )


def _placed(mesh: Mesh, name: str, nodes: Sequence[int], counts: Sequence[int]) -> DimensionPlacement:
    spans = Counter[int]()
    size = 0
    for group in groups_of(mesh, name):
        size = len(group)
        spans[len({nodes[rank] for rank in group})] += 1
    least = _least_nodes(size, counts)
    apart = sum(count for span, count in spans.items() if span > least)
    return DimensionPlacement(name, size, sum(spans.values()), max(spans), apart, least)


def _least_nodes(size: int, counts: Sequence[int]) -> int:
    held = 0
    for number, count in enumerate(counts, 1):
        held += count
        if held >= size:
            return number
    return len(counts)


def _better(mesh: Mesh, placements: Sequence[DimensionPlacement], nodes: Sequence[int]) -> str:
    """Return an order under which such dimensions span fewer nodes, and none of them more; empty: there is none."""
    now = _spans_inside(placements)
    if all(placement.groups_apart == 0 for placement in placements if belongs_inside(placement.name)):
        return ""
    inner = [name for names in _INSIDE for name in names_of(mesh) if name.lower() in names]
    inner += [
        name for above in mesh.overlaid for name in names_of(mesh) if name in above.over and name not in inner
    ]
    inner = list(dict.fromkeys(inner))
    best, best_spans = "", now
    for kept_inner in range(len(inner), 0, -1):
        near = inner[:kept_inner]
        order = [name for name in names_of(mesh) if name not in near] + near[::-1]
        by_name = {dimension.name: dimension for dimension in mesh.dimensions}
        candidate = replace(mesh, dimensions=tuple(by_name[name] for name in order))
        spans = _spans_inside(_placements(candidate, nodes))
        if spans != best_spans and all(new <= old for new, old in zip(spans, best_spans, strict=True)):
            best, best_spans = order_of(candidate), spans
    return best


def _spans_inside(placements: Sequence[DimensionPlacement]) -> list[int]:
    by_name = {placement.name: placement for placement in placements if belongs_inside(placement.name)}
    return [by_name[name].nodes_spanned for name in sorted(by_name)]
