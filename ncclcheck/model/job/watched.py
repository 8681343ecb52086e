"""What `watch` saw of a running job: its decision, who is at fault and where in the code, and who waits for it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

WatchDecision: TypeAlias = Literal["ok", "quiet", "hang", "died", "stopped", "silent"]


class RankLook(Struct, frozen=True, forbid_unknown_fields=True):
    """What one look at a rank read: counters since its start, of the rank with its own child processes.

    `state` is the kernel's letter of the main process (proc(5)); `switches` are the voluntary ones of its main thread.
    """

    rank: int | None
    pid: int
    state: str
    cpu_s: float
    switches: int
    io_bytes: int


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """All ranks of this node at a moment, and the bytes that its network links moved since they came up."""

    at_s: float
    ranks: tuple[RankLook, ...]
    network_bytes: int = 0


class GpuLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """How busy a GPU of this node is; None where NVML does not tell. `pids`: the processes that compute on it.

    `memory_percent`: of the last second at most, its memory was read or written.
    """

    memory_percent: int | None = None
    power_mw: int | None = None
    power_limit_mw: int | None = None
    pids: tuple[int, ...] | None = None


class Frame(Struct, frozen=True, forbid_unknown_fields=True):
    """One call on a stack: the file and line that it is at, and the function."""

    file: str
    line: int
    function: str


class WatchedRank(Struct, frozen=True, forbid_unknown_fields=True):
    """One rank as it was when the decision was made. `rank` is None where nothing says which it is.

    `file`, `line`, `function`: where it is in the code; None where no stack could be read. `reason`: what it does, or
    how it ended.
    """

    rank: int | None
    host: str
    pid: int
    file: str | None = None
    line: int | None = None
    function: str | None = None
    reason: str = ""


class StackGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """The ranks whose main threads are at the same place; the innermost call comes first."""

    ranks: tuple[int, ...]
    frames: tuple[Frame, ...]
    in_collective: bool


class Connection(Struct, frozen=True):
    """A TCP connection of a rank: what its kernel counted so far. `segments_in` None: the kernel does not tell.

    `retries`: how often the oldest bytes without an acknowledgement were sent again after a timeout.
    """

    rank: int | None
    local: tuple[str, int]
    peer: tuple[str, int]
    unacknowledged: int
    resent: int = 0
    segments_in: int | None = None
    retries: int = 0


class BlockedLink(Struct, frozen=True, forbid_unknown_fields=True):
    """A TCP connection of a rank on which packets get lost, as one end sees it.

    `unacknowledged`: bytes that the peer did not acknowledge at two looks in a row. `heard`: packets of the peer
    arrived in between; None: the kernel does not tell.
    """

    host: str
    peer: str
    rank: int | None
    unacknowledged: int
    resent: int = 0
    heard: bool | None = None


class Watch(Struct, frozen=True, forbid_unknown_fields=True):
    """The decision on a job, and the evidence for it."""

    decision: WatchDecision
    since_s: float = 0.0  # seconds since anything advanced, or since the death, when the decision was made
    culprits: tuple[WatchedRank, ...] = ()
    victims: tuple[int, ...] = ()  # ranks that wait
    evidence: tuple[str, ...] = ()  # files that were kept
    groups: tuple[StackGroup, ...] = ()
    waits_in: str = ""  # the call in which the victims wait
    remarks: tuple[str, ...] = ()  # what could not be read
    hosts: tuple[str, ...] = ()  # nodes whose ranks were studied
    silent: tuple[str, ...] = ()  # nodes of the job whose watchers stopped answering
    blocked: tuple[BlockedLink, ...] = ()  # connections of the ranks on which packets get lost
