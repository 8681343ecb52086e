"""What the links allow, and what others measured on such hardware: the scale on which a bandwidth is judged."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.bench import Op

CeilingSource: TypeAlias = Literal["link-speed", "measured"]
Grade: TypeAlias = Literal["A", "B", "C", "D"]
Fabric: TypeAlias = Literal["nvlink", "mnnvl", "rdma", "tcp", "pcie"]


class Ceiling(Struct, frozen=True, forbid_unknown_fields=True):
    """The most that one op can reach here, as bus bandwidth in GB/s, and the term that binds.

    `busbw_gb_s` is what the usual algorithm (a ring) reaches; `limit_gb_s` what no algorithm can exceed, because of
    `limited_by`; None where that is not known: a measured bandwidth is no limit. `reached` is the best measured point
    over `busbw_gb_s`.
    """

    op: Op
    busbw_gb_s: float
    limit_gb_s: float | None
    binds: str
    source: CeilingSource
    reached: float
    limited_by: str = ""
    label: str = ""  # why a value above it is no wonder: two nodes, NVLS, a tree, SHARP


class Reference(Struct, frozen=True, forbid_unknown_fields=True):
    """One published measurement: under what, how much, and who says so.

    `nics_per_node` and `nic_gbit_s` are None where the source does not state them. `date` is the source's own, empty
    where it has none. Grades: A a raw log in a repository, B a table of a named operator or vendor, C read off a slide,
    D a comment. Only A and B are good enough to compare with.
    """

    gpu: str
    gpus_per_node: int
    nodes: int
    fabric: Fabric
    op: Op
    size_bytes: int | None  # None: the largest or best of a sweep
    busbw_gb_s: float
    grade: Grade
    source: str
    date: str = ""
    nics_per_node: int | None = None
    nic_gbit_s: float | None = None
    note: str = ""


class Comparable(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the reference table that fits, beside the point it speaks of."""

    reference: Reference
    size_bytes: int
    busbw_gb_s: float
