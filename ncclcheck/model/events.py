"""What a job's logs say, as typed events: the section `log` of a Snapshot, bounded whatever the size of the logs."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Layer: TypeAlias = Literal["nccl", "gloo", "store", "other"]
Reason: TypeAlias = Literal["refused", "timed-out", "no-route", "unreachable", "reset", "no-address", "other"]
ExceptionKind: TypeAlias = Literal["ordinary", "after-effect", "launcher", "ignored"]
Behind: TypeAlias = Literal["not-entered", "not-started", "no-dump", "no-answer", "dead"]
InitStage: TypeAlias = Literal["start", "complete", "destroy", "abort"]


class LogPosition(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a line stands and whose it is. None: the log does not say. `time_s`: seconds of that log's own clock.

    In a flight recorder dump, which has no lines, `line` is the sequence number of the collective.
    """

    file: str
    line: int
    rank: int | None = None
    host: str | None = None
    time_s: float | None = None


class Event(Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """One line that means something. `text` is the line without its launcher's prefix, cut to a bounded length."""

    place: LogPosition
    text: str


class Remark(Event, frozen=True, tag="remark"):
    """A line whose meaning is its topic, a word of `ncclcheck.logs.patterns.topics`; `values` are what it names."""

    topic: str
    values: dict[str, str] = {}


class ConnectFailure(Event, frozen=True, tag="connect-failure"):
    """A TCP connection that could not be made, or (`established`) one that broke for want of answers.

    `final` False: the caller said that it would try again.
    """

    layer: Layer
    address: str
    port: int
    reason: Reason
    final: bool = True
    established: bool = False
    local: str = ""


class CollectiveTimeout(Event, frozen=True, tag="collective-timeout"):
    """A watchdog or a wait that timed out. `sequence` None: not known. Sizes are numbers of elements."""

    layer: Layer
    group: str
    sequence: int | None
    operation: str
    elements_in: int | None
    elements_out: int | None
    timeout_ms: int | None


class GroupStatus(Event, frozen=True, tag="group-status"):
    """How far a rank's group had come when it gave up."""

    group: str
    enqueued: int
    completed: int


class Registered(Event, frozen=True, tag="registered"):
    """How many of the expected workers had registered with the store when one gave up, or saw too many."""

    joined: int
    expected: int


class PythonException(Event, frozen=True, tag="exception"):
    """The last line of a traceback. `where` is its innermost frame, if that was seen."""

    class_name: str
    message: str
    kind: ExceptionKind
    where: str = ""
    topics: tuple[str, ...] = ()


class WorkerExit(Event, frozen=True, tag="worker-exit"):
    """A launcher's verdict on a worker: exit codes below 0 are signals. `first`: called the first failure by it."""

    exit_code: int
    first: bool = False


class CommInit(Event, frozen=True, tag="comm-init"):
    """A communicator's start or end on a rank."""

    stage: InitStage
    comm_id: str
    comm_rank: int
    comm_ranks: int


class RankWaits(Event, frozen=True, tag="rank-waits"):
    """A rank that entered a collective and was still in it when it was asked: by a dump, or by NCCL RAS."""

    group: str
    sequence: int
    operation: str


class RankBehind(Event, frozen=True, tag="rank-behind"):
    """A rank that others wait for: it has not entered `operation`, or (`how`) not begun it on its GPU, or is silent.

    `sequence`: of that collective in its group, or how many of them the others had launched. `waiting`: some of the
    ranks that were in it.
    """

    group: str
    sequence: int
    operation: str
    how: Behind
    waiting: tuple[int, ...] = ()


class RankDiffers(Event, frozen=True, tag="rank-differs"):
    """A rank whose collective at that step is not the one of most others; `text` says both.

    `alone`: no operation differs, but this rank went on into one that most others did not enter.
    """

    group: str
    sequence: int
    alone: bool = False


AnyEvent: TypeAlias = (
    Remark
    | ConnectFailure
    | CollectiveTimeout
    | GroupStatus
    | Registered
    | PythonException
    | WorkerExit
    | CommInit
    | RankWaits
    | RankBehind
    | RankDiffers
)


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of channel from a rank to a rank, like `P2P/CUMEM` or `NET/IB/0/GDRDMA`."""

    source: int
    target: int
    via: str


class LoggedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """How NCCL ran a collective of so many bytes (of one rank), as it logged at rank 0. `channels` 0: not said."""

    op: str  # allreduce
    size_bytes: int
    algorithm: str
    protocol: str
    channels: int


class Process(Struct, frozen=True, forbid_unknown_fields=True):
    """The transports that one process logged. Empty or None: its log does not say."""

    host: str
    pid: int
    place: LogPosition
    rank: int | None = None
    ranks: int | None = None
    nccl_version: str = ""
    cuda_version: str = ""
    driver_version: str = ""
    interface: str = ""
    address: str = ""
    network: str = ""
    devices: tuple[str, ...] = ()
    network_devices: tuple[
        tuple[str, ...], ...
    ] = ()  # the same by number, where several ports are one of them
    sockets: tuple[str, ...] = ()
    plugin: str = ""
    settings: dict[str, str] = {}
    links: tuple[Link, ...] = ()
    nodes: int | None = None
    local_ranks: int | None = None
    bus_id: str = ""
    channels: int | None = None
    algorithms: tuple[str, ...] = ()
    calls: tuple[LoggedCall, ...] = ()
    gpudirect: tuple[str, ...] = ()
    inits_started: int = 0
    inits_completed: int = 0


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """First and last ordinary line of one process: what it was doing when it wrote last."""

    first: LogPosition
    first_text: str
    last: LogPosition
    last_text: str
    lines: int


class LogFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file that was read. `unread` says why its rest was not, if it was not read to its end."""

    name: str
    size_bytes: int
    lines: int
    unread: str = ""


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """All that the logs say; events in order of time, as far as the logs tell it. `dropped`: beyond the limit.

    `works`: of each file the last lines (three at most) that only a program at work writes, like a step with its loss.
    `news`: of each file the last ordinary line that has words which no line before it had.
    """

    files: tuple[LogFile, ...]
    events: tuple[AnyEvent, ...] = ()
    processes: tuple[Process, ...] = ()
    words: tuple[Words, ...] = ()
    works: dict[str, tuple[int, ...]] = {}
    news: tuple[Remark, ...] = ()
    hosts_of_ranks: dict[int, str] = {}
    dropped: int = 0
