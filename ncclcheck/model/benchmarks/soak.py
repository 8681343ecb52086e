"""A soak: what is measured for hours, what each block of it found, and the events of the whole series."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.benchmarks.op import Op

EventKind: TypeAlias = Literal["drop", "trend", "tail", "flap", "wrong", "died", "hang"]
Direction: TypeAlias = Literal["send", "receive", "both"]
TailCause: TypeAlias = Literal["late", "stopped", "core", "unknown"]
USUAL_DROP = 0.05
LEAST_DROP, MOST_DROP = 0.02, 0.9


class SoakRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What the user asks of a soak. `drop`, `duty`: parts. No `ops`, no `size_bytes`: the usual, or those of `folder`.

    `folder` holds the blocks; "": one of its own is made. `resumes`: the series that is there is continued.
    """

    duration_s: float = timeouts.SOAK_S
    every_s: float | None = None
    drop: float | None = None
    duty: float | None = None
    ops: tuple[Op, ...] = ()
    size_bytes: int | None = None
    folder: str = ""
    resumes: bool = False
    until_finding: bool = False


class SoakPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """What the ranks need of it. `first`: the number of the first block, which a resumed soak does not begin at 0."""

    duration_s: float
    every_s: float
    drop: float
    duty: float
    until_finding: bool = False
    first: int = 0


class SoakTail(Struct, frozen=True, forbid_unknown_fields=True):
    """An iteration far longer than its block's median, and the rank that kept the others waiting, where one did."""

    time_us: float
    rank: int | None
    how: TailCause
    by_us: float  # how late that rank was, or for how long it stood still


class NodeCounts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """By how much a node's counters grew during a block; those that did not are left out.

    Names: "eth0 rx_errors", "eth0 carrier_changes", "tcp resent", "tcp sent", "throttled". `steal`: the part of its
    CPU time that the host of a virtual machine took. `waited`: for which part of the block its first rank waited for a
    core. `clock_mhz`: of its slowest GPU; 0: it has none. `carriers`: of so
    many interfaces the changes of the carrier were read. `temperature_c`: of its hottest GPU; 0: not known.
    """

    host: str
    counts: dict[str, int] = {}
    steal: float = 0.0
    clock_mhz: float = 0.0
    carriers: int = 0
    temperature_c: int = 0
    waited: float = 0.0


class SoakPair(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"from_host": "from", "to_host": "to"},
):
    """What one node sent to another, with no other transfer of either at the same time.

    `waited`: for which part of that time one of its ends waited for a core, or did not run.
    """

    from_host: str
    to_host: str
    gbit_s: float
    waited: float = 0.0


class SoakBlock(Struct, frozen=True, forbid_unknown_fields=True, tag="block"):
    """A block: one collective for some seconds, or a few rounds of pairs (no `op`). All times are the slowest rank's.

    `at_s` is Unix time at its begin. `times`: how many iterations took 1.04 ** key microseconds.
    """

    number: int
    at_s: float
    seconds: float
    op: Op | None = None
    iterations: int = 0
    median_us: float = 0.0
    worst_us: float = 0.0
    wrong: int = 0
    wrong_ranks: tuple[int, ...] = ()
    tails: tuple[SoakTail, ...] = ()
    nodes: tuple[NodeCounts, ...] = ()
    pairs: tuple[SoakPair, ...] = ()
    times: dict[int, int] = {}


class SoakStart(Struct, frozen=True, forbid_unknown_fields=True, tag="start"):
    """The first line of a series, and of each time that it is resumed. `hosts`: of every rank."""

    schema_version: str
    tool_version: str
    at_s: float
    backend: str
    transport: str
    hosts: tuple[str, ...]
    ops: tuple[Op, ...]
    size_bytes: int
    plan: SoakPlan


class SoakLost(Struct, frozen=True, forbid_unknown_fields=True):
    """A rank that ended a soak."""

    rank: int
    host: str
    kind: Literal["died", "hang"]
    detail: str


class SoakEnd(Struct, frozen=True, forbid_unknown_fields=True, tag="end"):
    """The last line of a series that was not killed: whether all its time was measured, or who ended it."""

    at_s: float
    is_finished: bool
    why: str = ""
    lost: tuple[SoakLost, ...] = ()


SoakLine: TypeAlias = SoakStart | SoakBlock | SoakEnd


class SoakEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that happened, in seconds since the series began. `to_s`: null while it lasts, or at the end.

    `counters`: what moved on the nodes meanwhile.
    """

    kind: EventKind
    from_s: float
    to_s: float | None
    hosts: tuple[str, ...]
    direction: Direction | None
    size_percent: float | None
    summary: str
    counters: tuple[str, ...] = ()
    named_s: float | None = None  # when the drop was known


class SoakSample(Struct, frozen=True, forbid_unknown_fields=True):
    """A point of the series: the median and the worst iteration of so many blocks in a row."""

    at_s: float
    median_us: float
    worst_us: float
    blocks: int = 1


class SoakSeries(Struct, frozen=True, forbid_unknown_fields=True):
    """All blocks of a collective. p99 needs 100 iterations, p99.9 10,000; else they are null.

    `least_drop_percent`: the smallest drop of `least_drop_s` seconds that the noise of the blocks lets be seen; null
    where too few blocks tell what is usual.
    """

    op: Op
    size_bytes: int
    iterations: int
    median_us: float
    p99_us: float | None
    p999_us: float | None
    samples: tuple[SoakSample, ...]
    least_drop_percent: float | None = None
    least_drop_s: float | None = None


class SoakWindow(Struct, frozen=True, forbid_unknown_fields=True):
    """The worst stretch of so many seconds: when it began, and how much longer than the median its iterations took."""

    seconds: int
    at_s: float
    slower_percent: float


class SoakCount(Struct, frozen=True, forbid_unknown_fields=True):
    """A counter of a node that moved: by how much in all, and in which blocks (when it was; the last ones)."""

    host: str
    name: str
    grown: int
    at_s: tuple[float, ...]


class SoakGpus(Struct, frozen=True, forbid_unknown_fields=True):
    """The GPUs of a node beside the series: the usual and the lowest clock of its slowest, and the heat of its hottest.

    `least_at_s`: when the clock was lowest. `hottest_c` 0: NVML did not tell.
    """

    host: str
    usual_mhz: float
    least_mhz: float
    least_at_s: float
    hottest_c: int = 0


class SoakGap(Struct, frozen=True, forbid_unknown_fields=True):
    """No block is known for so long: the soak was resumed then, or lines were lost."""

    from_s: float
    to_s: float


class Soak(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a series. `seconds`: from its first block to the end of its last, gaps included.

    `is_finished`: the time that was asked for has passed. `unreadable`: damaged lines of the file that were skipped.
    `carriers_unread`: hosts whose carriers were not read in more than a tenth of the blocks.
    """

    blocks: int
    seconds: float
    events: tuple[SoakEvent, ...]
    began: float
    drop: float
    series: tuple[SoakSeries, ...] = ()
    windows: tuple[SoakWindow, ...] = ()
    counters: tuple[SoakCount, ...] = ()
    gpus: tuple[SoakGpus, ...] = ()
    gaps: tuple[SoakGap, ...] = ()
    hosts: tuple[str, ...] = ()
    folder: str = ""
    is_finished: bool = False
    unreadable: int = 0
    events_left_out: int = 0
    carriers_unread: tuple[str, ...] = ()
