"""The groups of a mesh as a rank sees them: those that there are, and the process groups of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ncclcheck.bench.point import BenchRank
from ncclcheck.measure.mesh.groups import group_sizes, groups_of
from ncclcheck.model.benchmarks.mesh import Mesh


class DimensionGroups(Struct, frozen=True):
    """The groups of one dimension. `number`: of this rank's group; `first`: how many groups come before it."""

    name: str
    ranks: tuple[tuple[int, ...], ...]
    number: int
    process_group: Any
    first: int

    @property
    def own_ranks(self) -> tuple[int, ...]:
        """Return the ranks of this rank's group."""
        return self.ranks[self.number]


def dimension_ranks(mesh: Mesh) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the groups of each dimension with more than one rank, in the order of the mesh."""
    return {
        name: tuple(tuple(group) for group in groups_of(mesh, name))
        for name, size in group_sizes(mesh).items()
        if size > 1
    }


def form_groups(rank: BenchRank, mesh: Mesh) -> Mapping[str, DimensionGroups]:
    """Form all groups, which every rank does in the same order, as torch's DeviceMesh does."""
    import torch.distributed as dist

    found: dict[str, DimensionGroups] = {}
    first = 0
    for name, groups in dimension_ranks(mesh).items():
        own_number, process_group = 0, None
        for number, ranks in enumerate(groups):
            rank.progress.enter()
            formed = dist.new_group(list(ranks))
            rank.progress.leave(measured=False)
            if rank.task.rank in ranks:
                own_number, process_group = number, formed
        found[name] = DimensionGroups(name, groups, own_number, process_group, first)
        first += len(groups)
    return found
