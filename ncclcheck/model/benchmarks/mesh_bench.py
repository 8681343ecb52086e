"""A benchmark of the job's parallel groups: what is measured in them, and the results."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.benchmarks.op import Op


class MeshCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A collective in the groups of one dimension. `per_step`: how often a step of the model makes it; 0: no model.

    `what`: what it is for, in the words of the model's rule ("gradients of a layer").
    """

    dimension: str
    op: Op
    size_bytes: int
    per_step: int = 0
    what: str = ""


class MeshPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """What is measured in the groups: the mesh with all sizes known, the calls in the order in which they are made.

    `mix`: all of them together as well. `budget_s` is for all of it. `uncounted`: dimensions in which the model
    exchanges something that is not measured, or not known.
    """

    mesh: Mesh
    calls: tuple[MeshCall, ...]
    budget_s: float
    mix: bool = False
    uncounted: tuple[str, ...] = ()


class GroupTime(Struct, frozen=True, forbid_unknown_fields=True):
    """One group while all groups of its dimension work: the median time of its slowest rank, in microseconds.

    With the 95 % interval of that median; null: too few iterations. `nodes`: how many it spans.
    """

    group: int
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    nodes: int
    time_us: float
    low_us: float | None
    high_us: float | None
    busbw_gb_s: float
    wrong: int | None


class SlowGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """A group that is slower than usual, and the usual time: the median of the others that span as many nodes."""

    time: GroupTime
    usual_us: float
    compared: int


class MeshPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A call in all groups of its dimension at once. `groups`: slowest first, at most 256 of `group_count`.

    Then follow those of the others with wrong elements, at most 256. `wrong`, `wrong_groups`, `slow`, `judged` are of
    all groups: the wrong elements (null: not verified), the groups that have some, the slow ones (at most 256), and how
    many could be compared with others. `alone_us`: the slowest group while all others wait; `contention`: its time
    together over its time alone.
    """

    dimension: str
    op: Op
    size_bytes: int
    group_size: int
    group_count: int
    iters: int
    fastest_us: float
    median_us: float
    groups: tuple[GroupTime, ...]
    wrong: int | None = None
    wrong_groups: int = 0
    slow: tuple[SlowGroup, ...] = ()
    judged: int = 0
    alone_us: float | None = None
    contention: float | None = None
    per_step: int = 0
    what: str = ""
    unsupported: str = ""  # why the backend does not do it; then nothing is measured


class MixShare(Struct, frozen=True, forbid_unknown_fields=True):
    """What one dimension takes of the mix, where its calls are made one after the other."""

    dimension: str
    time_us: float
    share: float


class Mix(Struct, frozen=True, forbid_unknown_fields=True):
    """All calls in one order on every rank: one after the other, and all of them on their way at once.

    `serial_us`, `overlapped_us`: medians over the rounds, of the slowest rank. `gain`: serial over overlapped.
    """

    calls: tuple[MeshCall, ...]
    rounds: int
    serial_us: float
    overlapped_us: float
    gain: float
    shares: tuple[MixShare, ...]
    wrong: int | None


class StepTime(Struct, frozen=True, forbid_unknown_fields=True):
    """How long the communication of one step of the model takes, nothing overlapped: no compute is guessed.

    `not_counted`: dimensions that are missing from it, because --dims leaves them out, or no rule knows them.
    """

    seconds: float
    low_s: float
    high_s: float
    not_counted: tuple[str, ...] = ()


class MeshBench(Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured in the groups. `order`: the mesh as `--mesh` takes it."""

    order: str
    points: tuple[MeshPoint, ...]
    mix: Mix | None = None
    step: StepTime | None = None
