"""The parallel groups of a job: the ranks as a grid whose dimensions are named tp, dp, pp and so on."""

from __future__ import annotations

from msgspec import Struct


class MeshDimension(Struct, frozen=True, forbid_unknown_fields=True):
    """One dimension. `size` 0: as many as are left of the world. `over`: it lies over these dimensions, as ep does."""

    name: str
    size: int
    over: tuple[str, ...] = ()


class Mesh(Struct, frozen=True, forbid_unknown_fields=True):
    """The grid, in torch's order: ranks that follow each other differ in the last dimension first.

    `overlaid` are the dimensions that lie over others. `source`: where this node read it, for people.
    """

    dimensions: tuple[MeshDimension, ...]
    overlaid: tuple[MeshDimension, ...] = ()
    source: str = "--mesh"


class DimensionPlacement(Struct, frozen=True, forbid_unknown_fields=True):
    """How the groups of a dimension lie on the nodes.

    `nodes_spanned`: of the group that spans most; `groups_apart`: how many span more than `least_nodes`, the fewest
    that can hold so many ranks.
    """

    name: str
    size: int
    groups: int
    nodes_spanned: int
    groups_apart: int
    least_nodes: int


class MeshPlacement(Struct, frozen=True, forbid_unknown_fields=True):
    """The placement of all dimensions with more than one rank. `order`: as `--mesh` takes it."""

    order: str
    source: str
    dimensions: tuple[DimensionPlacement, ...]
    better_order: str = ""  # under which a dimension whose groups belong inside nodes spans fewer
