"""What the agents of a run tell each other through the store: strict JSON, bounded in size, never pickled."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import Quantity, RepeatedRounds, Ring
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer, NodeFacts, Route
from ncclcheck.model.hardware import PortCounters
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Probe

SCHEMA = "1"
FACTS_LIMIT_BYTES = 4 * 1024 * 1024
SMALL_LIMIT_BYTES = 256 * 1024
REPORT_LIMIT_BYTES = 512 * 1024 * 1024
T = TypeVar("T")


class Version(Struct, frozen=True):
    """The one field every message starts with; read alone, so that a newer schema is told from garbage."""

    schema_version: str
    tool_version: str = ""


class Hello(Struct, frozen=True, forbid_unknown_fields=True):
    """A process has come: who its launcher says it is."""

    schema_version: str
    tool_version: str
    host: str
    launch: Launch


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """A node's facts, and where it listens."""

    schema_version: str
    tool_version: str
    facts: NodeFacts
    targets: tuple[Target, ...]


class Announced(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a node listens, and by which names others may look for it: nobody is called who did not announce it."""

    schema_version: str
    tool_version: str
    targets: tuple[Target, ...]
    names: tuple[str, ...]


class RankReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A further rank of a node: its allow-listed environment."""

    schema_version: str
    tool_version: str
    environment: dict[str, str]


class Reach(Struct, frozen=True, forbid_unknown_fields=True, tag="reach"):
    """Probe these peers: for each ticket, the peers it has to reach."""

    peers: tuple[Peer, ...]
    targets_of: dict[str, tuple[int, ...]]  # ticket -> tickets of its peers
    deadline_s: float


class Resolve(Struct, frozen=True, forbid_unknown_fields=True, tag="resolve"):
    """Say what this name of the member with this ticket leads to."""

    name: str
    ticket: int
    deadline_s: float


class Measure(Struct, frozen=True, forbid_unknown_fields=True, tag="measure"):
    """Measure the latency or the bandwidth to the partners in the ring; or only some transfers again."""

    quantity: Quantity
    ring: Ring
    again: RepeatedRounds | None = None


class Share(Struct, frozen=True, forbid_unknown_fields=True, tag="share"):
    """Leave a mark in each of these folders, see which marks of the others are there, and remove it."""

    paths: tuple[str, ...]
    tickets: tuple[int, ...]


class Confirm(Struct, frozen=True, forbid_unknown_fields=True, tag="confirm"):
    """Ask the real library under these settings: for each ticket a list of environments."""

    environments: dict[str, tuple[dict[str, str | None], ...]]
    deadline_s: float


class Bench(Struct, frozen=True, forbid_unknown_fields=True, tag="bench"):
    """Start the workers: the host of every rank; and for each ticket its first rank, its count, its environment.

    `name` begins every key under which node 0 and the nodes talk about them. `turns`: they measure when it is their
    turn. In an environment None unsets a variable.
    """

    plan: BenchPlan
    world_size: int
    hosts: tuple[str, ...]
    first_rank: dict[str, int]
    count: dict[str, int]
    environments: dict[str, dict[str, str | None]]
    nonce: str
    deadline_s: float
    name: Literal["bench", "as-is", "advised"] = "bench"
    turns: bool = False


class Compare(Struct, frozen=True, forbid_unknown_fields=True, tag="compare"):
    """Start several sets of workers, which take turns."""

    sets: tuple[Bench, ...]


class Recount(Struct, frozen=True, forbid_unknown_fields=True, tag="recount"):
    """Read the error counters of the RDMA ports again."""


class Finish(Struct, frozen=True, forbid_unknown_fields=True, tag="finish"):
    """The verdict, the same on every node."""

    exit_code: int
    reasons: tuple[str, ...]


Order: TypeAlias = Reach | Resolve | Measure | Share | Confirm | Bench | Compare | Recount | Finish


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """What every agent does next."""

    schema_version: str
    tool_version: str
    order: Order


class OrdersRefused(Struct, frozen=True, forbid_unknown_fields=True):
    """The orders that a node did not follow: what each asked for, and why that is none of node 0's."""

    schema_version: str
    tool_version: str
    orders: tuple[tuple[str, str], ...]


class Probed(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer to Reach.

    What this node found as a caller, its routes to its peers' first addresses, and the addresses whose calls arrived
    here without hearing our answer. `nccl_listens`: NCCL's own listener was still there after the probes.
    """

    schema_version: str
    tool_version: str
    probes: Fact[tuple[Probe, ...]]
    routes: tuple[Route, ...]
    unanswered: tuple[str, ...]
    nccl_listens: bool = False


class Resolved(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer to Resolve."""

    schema_version: str
    tool_version: str
    addresses: Fact[tuple[str, ...]]


class Timed(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer to Measure: the round trips to the partners, or this node's side of its transfers."""

    schema_version: str
    tool_version: str
    latencies: tuple[Probe, ...] = ()
    sent: tuple[Sent, ...] = ()
    received: tuple[Received, ...] = ()


class SharedFolder(Struct, frozen=True, forbid_unknown_fields=True):
    """One folder: why the mark could not be written (None: it was), whose marks were seen, why it is not removed."""

    path: str
    wrote: Missing | None
    saw: Fact[tuple[int, ...]]
    waited_s: float = 0.0
    left: str = ""


class Shared(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer to Share."""

    schema_version: str
    tool_version: str
    folders: tuple[SharedFolder, ...]


class Confirmed(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer to Confirm: one answer per environment, in order."""

    schema_version: str
    tool_version: str
    answers: tuple[Fact[NcclAnswer], ...]


class Recounted(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer to Recount: the readings, each as the first of its port."""

    schema_version: str
    tool_version: str
    ports: Fact[tuple[PortCounters, ...]]


def read_message(data: bytes, kind: type[T], limit_bytes: int) -> T:
    """The message in `data`. Raises DecodeError: too large, another schema version, or not of this shape."""
    if len(data) > limit_bytes:
        raise DecodeError(f"{len(data)} bytes, more than the {limit_bytes} that are accepted")
    version = decode(data, Version)
    if version.schema_version != SCHEMA:
        raise DecodeError(
            f"schema version {version.schema_version[:40]!r} of ncclcheck {version.tool_version[:40]!r}, "
            f"this one speaks {SCHEMA!r}"
        )
    return decode(data, kind)
