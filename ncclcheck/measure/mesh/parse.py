"""`--mesh pp=2,dp=4,tp=8`, and Megatron's way to say the order."""

from __future__ import annotations

import re

from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension
from ncclcheck.model.errors import UsageError

_PART = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,30})=(-1|[1-9][0-9]{0,6})(?:@([A-Za-z0-9_+]{1,200}))?", re.ASCII)
_MOST_DIMENSIONS = 12
_MEGATRON = (
    "tp",
    "cp",
    "ep",
    "dp",
    "pp",
)  # megatron/core/parallel_state.py; those of one rank may be left out


def parse_mesh(text: str, order: str | None = None) -> Mesh:
    """Return the mesh of `--mesh`, and `--mesh-order` where it is given. Raises UsageError.

    Without an order the last dimension varies fastest, as in torch's DeviceMesh. With one (`tp-cp-ep-dp-pp`, of
    Megatron-LM) the first does; it names each dimension, and those that have one rank may be left out of the mesh.
    `ep=8@dp,tp` or `ep=8@dp+tp`: ep lies over dp and tp. One size may be -1: all ranks that are left.
    """
    parts: list[str] = []
    for part in map(str.strip, text.split(",")):
        if parts and "@" in parts[-1] and "=" not in part:
            parts[-1] += f"+{part}"  # ep=8@dp,tp: the comma separates what ep lies over
        else:
            parts.append(part)
    dimensions = [_dimension(part, text) for part in parts]
    names = [dimension.name for dimension in dimensions]
    if len(set(names)) < len(names) or len(names) > _MOST_DIMENSIONS:
        raise UsageError(f"--mesh {text}: name each dimension once, {_MOST_DIMENSIONS} of them at most")
    if sum(dimension.size == 0 for dimension in dimensions) > 1:
        raise UsageError(f"--mesh {text}: one size at most can be -1")
    plain = tuple(dimension for dimension in dimensions if not dimension.over)
    overlaid = tuple(dimension for dimension in dimensions if dimension.over)
    for dimension in overlaid:
        unknown = [name for name in dimension.over if name not in {below.name for below in plain}]
        if unknown or not dimension.size:
            raise UsageError(
                f"--mesh {text}: {dimension.name} has a size, and lies over dimensions of the mesh "
                f"({', '.join(below.name for below in plain)})"
            )
    if order is None:
        return Mesh(plain, overlaid)
    return Mesh(_ordered(plain, overlaid, order), overlaid, "--mesh and --mesh-order")


def _dimension(part: str, text: str) -> MeshDimension:
    found = _PART.fullmatch(part)
    if found is None:
        raise UsageError(
            f"--mesh {text}: {part!r} is no dimension: write --mesh pp=2,dp=4,tp=8, the one that varies fastest last"
        )
    size = int(found[2])
    return MeshDimension(found[1], 0 if size == -1 else size, tuple(found[3].split("+")) if found[3] else ())


def _ordered(
    dimensions: tuple[MeshDimension, ...], overlaid: tuple[MeshDimension, ...], order: str
) -> tuple[MeshDimension, ...]:
    by_name = {dimension.name: dimension for dimension in dimensions}
    names = order.split("-")
    missing = [name for name in by_name if name not in names]
    if missing or len(set(names)) < len(names):
        raise UsageError(
            f"--mesh-order {order}: name each dimension of --mesh once, the one that varies fastest first"
            + (f" ({', '.join(missing)} is missing)" if missing else "")
        )
    above = {dimension.name for dimension in overlaid}
    unknown = [name for name in names if name not in by_name and name not in above and name not in _MEGATRON]
    if unknown:
        raise UsageError(
            f"--mesh-order {order}: {', '.join(unknown)} is no dimension of --mesh ({', '.join(by_name)}), nor one of "
            f"Megatron-LM's that may be left out ({', '.join(_MEGATRON)})"
        )
    return tuple(by_name.get(name, MeshDimension(name, 1)) for name in reversed(names) if name not in above)
