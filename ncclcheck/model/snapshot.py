"""`Snapshot`: all that a run observed, the only argument of a check, and a document to save and replay."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.authentication import Authentication
from ncclcheck.model.bench import BenchResult, Comparison
from ncclcheck.model.bench_demands import BenchDemands
from ncclcheck.model.benchmarks.isolation import PairIsolation
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.events import Log
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import MasterPath, NcclAnswer, NodeFacts
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.job.watched import Watch
from ncclcheck.model.launch import Launch
from ncclcheck.model.policy.expected import Expected

ProbeKind: TypeAlias = Literal["tcp", "mtu", "latency", "bandwidth", "clock", "loss"]
ProbeOutcome: TypeAlias = Literal[
    "ok",
    "refused",
    "filtered",  # no answer before the deadline
    "answer-lost",  # no answer before the deadline, though the connection request arrived: the answers are dropped
    "no-route",
    "self",  # the address is also the prober's own, so the probe says nothing about the peer
    "wrong-peer",  # another node than the one that published this address answered
    "stalled",  # small messages pass, large ones do not arrive
    "error",
]
Viewpoint: TypeAlias = Literal["all", "one-node"]


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """One node that reported."""

    host: str
    node_rank: int
    facts: NodeFacts


class RankPlace(Struct, frozen=True, forbid_unknown_fields=True):
    """A further rank of a node: its place in the job, and where its environment differs from the node's agent.

    `differs` maps a variable to this rank's value; None: not set here, set for the agent.
    """

    rank: int
    host: str
    node_rank: int
    local_rank: int
    world_size: int
    differs: dict[str, str | None] = {}


class Silent(Struct, frozen=True, forbid_unknown_fields=True):
    """A node that sent no facts. `host` is a guess from the launcher's list, or `node-rank-N`."""

    host: str
    node_rank: int
    phase: Literal["join", "facts", "probes", "confirm", "end"]
    waited_s: float
    knock: Fact[Knock] = Missing("absent", "no word from it")


class Knock(Struct, frozen=True, forbid_unknown_fields=True):
    """The claim of a node that could not join, sent to node 0 by datagram: it can name a cause and is never a fact."""

    host: str
    node_rank: int
    master: MasterPath
    origin: str = ""  # the address that the datagram came from, where nothing authenticates it
    relay: str = ""  # the node that heard it, and passed it on to node 0


UnreachedCause: TypeAlias = Literal[
    "name-unknown",
    "refused",
    "timed-out",
    "no-route",
    "host-key",
    "denied",
    "closed",  # ssh closed the connection before it started anything
    "no-ssh",  # no ssh client here
    "not-started",  # this machine could not start one more process
    "no-python",
    "no-ncclcheck",
    "other-version",
    "garbage",  # the output is not that of ncclcheck
    "ended",  # ncclcheck started there, and ended before it joined
    "silent",  # ncclcheck started there, and sent nothing in time
    "lost",  # it joined, and then stopped answering
]


class Unreached(Struct, frozen=True, forbid_unknown_fields=True):
    """A host of `--hosts` that could not take part: why, and what ssh or the remote program printed."""

    host: str
    node_rank: int
    cause: UnreachedCause
    detail: str
    seconds: float = 0.0


MeetingOutcome: TypeAlias = Literal["met", "unusable", "no-helper", "alone", "headless"]


class MeetingView(Struct, frozen=True, forbid_unknown_fields=True):
    """What happened to a node in the folder of `--meet-in`.

    "unusable": the folder cannot be read or written, or hangs. "no-helper": the process that works there for the node
    was killed. "alone": no file of another node appeared there.
    "headless": other nodes were there, the run of node 0 was not. `first_node_there`: node 0 answered by TCP in the
    meantime. `first`: the host of node 0, where it joined and opened no run, or died.
    """

    host: str
    node_rank: int
    path: str
    outcome: MeetingOutcome
    detail: str = ""
    filesystem: str = ""
    others: tuple[str, ...] = ()
    waited_s: float = 0.0
    first_node_there: bool = False
    first: str = ""
    is_open: bool = False  # any user may remove and replace files in the folder: it has no sticky bit


class LostFirstNode(Struct, frozen=True, forbid_unknown_fields=True):
    """Node 0, which this node joined and then lost: its name, empty where unknown, and when ("during ...")."""

    host: str
    when: str

    @property
    def sentence(self) -> str:
        """Return it as a sentence: "node 0 (node01) was lost during the benchmark"."""
        name = f" ({self.host})" if self.host else ""
        return f"node 0{name} was lost {self.when}"


class Refused(Struct, frozen=True, forbid_unknown_fields=True):
    """A message that was not accepted: garbage, too large, or of an unknown schema version."""

    host: str
    subject: str  # "facts", "hello", "probes", ...
    reason: str


NOT_COUNTED = Missing("absent", "the packets were not counted")


class Contested(Struct, frozen=True, forbid_unknown_fields=True):
    """A place in the job for which somebody else answers too: which of its messages contradict each other, and how."""

    host: str
    node_rank: int
    what: Literal["hello", "facts"]
    detail: str


class StoreChanged(Struct, frozen=True, forbid_unknown_fields=True):
    """A key of the store that somebody else erased or overwrote, as a node noticed that wrote or had read it."""

    host: str
    key: str
    what: str  # "is gone", "holds something else"


class StoodStill(Struct, frozen=True, forbid_unknown_fields=True):
    """A node whose ncclcheck did not run for a while though it should have, by its own clock.

    `is_listener`: the others were to be heard by it, so that it cannot tell whether they were silent.
    """

    host: str
    seconds: float
    is_listener: bool = False

    @property
    def sentence(self) -> str:
        """Return it as a sentence."""
        return f"ncclcheck on {self.host} itself stood still for {self.seconds:.0f} s"


class Measured(Struct, frozen=True, forbid_unknown_fields=True):
    """How the value of a latency, clock or bandwidth probe was measured."""

    samples: int  # round trips, or parallel streams
    seconds: float
    source_address: str  # what the kernel sent from
    least: float | None = None  # latency and clock only; a clock is known within half of it
    # share of the time in which the busiest threads of the two ends together ran or waited for a core; near 1
    # the CPU was the limit, not the network
    cpu_share: Fact[float] = Missing("absent", "not of interest for a latency")
    # how busy the busiest core of the two nodes was, with all processes
    core_share: Fact[float] = Missing("absent", "not of interest for a latency")
    transfers: int = 1  # the value is the best of this many transfers, since a slow one is repeated
    segments: Fact[int] = NOT_COUNTED  # packets with data that were sent
    # packets that were sent again (TCP_INFO); for a loss probe only those that were lost
    resent: Fact[int] = NOT_COUNTED
    # the quickest round trip that the kernel saw (TCP_INFO): no busy core makes it late; of a latency probe only
    kernel_us: Fact[float] = Missing("absent", "of interest for a latency only")


class Probe(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_host": "from", "to_host": "to"}):
    """One attempt between two nodes. `interface` is the target's, and `address` is the address that was called."""

    kind: ProbeKind
    from_host: str
    to_host: str
    interface: str
    address: str
    port: int
    outcome: ProbeOutcome
    value: float | None = None
    unit: str = ""
    detail: str = ""
    measured: Measured | None = None  # of kind latency, clock and bandwidth only
    listener: Literal["ncclcheck", "nccl"] = "ncclcheck"  # who listens there; "nccl": the real library
    # Of listeners at that address whose ports are spread over ip_local_port_range, where not all of them answered
    open_ports: tuple[int, ...] = ()
    closed_ports: tuple[int, ...] = ()


class Confirmation(Struct, frozen=True, forbid_unknown_fields=True):
    """What the real library chose on a node when asked again under a proposed environment."""

    host: str
    env: dict[str, str | None]
    answer: Fact[NcclAnswer]


class SharedView(Struct, frozen=True, forbid_unknown_fields=True):
    """What one node saw in a `--shared-dir` in which every node had left a file for a moment.

    `wrote` says why it could not write its own; None: it did. `saw`: the hosts whose files it found within `waited_s`.
    `left`: why its own file could not be removed again; empty: it is gone.
    """

    host: str
    path: str
    wrote: Missing | None
    saw: Fact[tuple[str, ...]]
    waited_s: float = 0.0
    left: str = ""


class CodeDifference(Struct, frozen=True, forbid_unknown_fields=True):
    """How the files of a `--code` path on one node differ from those on another: the first names, and how many."""

    path: str
    host: str
    compared_with: str
    changed: FileNames
    missing: FileNames  # on `host`
    extra: FileNames


class FileNames(Struct, frozen=True, forbid_unknown_fields=True):
    r"""The first of so many names; a byte that is no UTF-8 is written as `\xff`."""

    count: int
    first: tuple[str, ...] = ()


class NameView(Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses that a name resolves to on one node."""

    host: str
    addresses: Fact[tuple[str, ...]]


class WorkersAddress(Struct, frozen=True, forbid_unknown_fields=True):
    """The MASTER_ADDR that torch's c10d rendezvous will give to every worker: the name by which it calls `host`."""

    name: str
    host: str
    views: tuple[NameView, ...]


class Coverage(Struct, frozen=True, forbid_unknown_fields=True):
    """Which ordered pairs of nodes the reach plan covered."""

    pairs_planned: int
    pairs_possible: int
    scheme: str  # "all pairs", or how the sample was drawn


class Snapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """All that a run observed and expected. `viewpoint` "one-node": from a node that did not meet the others."""

    nodes: tuple[Node, ...]
    viewpoint: Viewpoint = "all"
    ranks: tuple[RankPlace, ...] = ()
    claims: tuple[Launch, ...] = ()  # what each process that joined claimed to be, in order of arrival
    claim_hosts: tuple[str, ...] = ()  # the host of each claim
    silent: tuple[Silent, ...] = ()
    refused: tuple[Refused, ...] = ()
    unanswered_callers: tuple[
        str, ...
    ] = ()  # addresses whose calls arrived at node 0, and did not hear its answers
    probes: Fact[tuple[Probe, ...]] = Missing("absent", "no probes were made")
    coverage: Fact[Coverage] = Missing("absent", "no probes were made")
    confirmations: tuple[Confirmation, ...] = ()
    bench: Fact[BenchResult] = Missing("absent", "no benchmark was run")
    comparison: Fact[Comparison] = Missing("absent", "as-is and advised were not compared")
    code_differences: tuple[
        CodeDifference, ...
    ] = ()  # between nodes whose code differs, where they could tell
    isolation: Fact[PairIsolation] = Missing("absent", "no pairs of nodes were tested")
    matrix: Fact[FabricMatrix] = Missing("absent", "no matrix of the nodes was measured")
    shared: Fact[tuple[SharedView, ...]] = Missing("absent", "no shared folder was tried")
    workers_address: Fact[WorkersAddress] = Missing("absent", "torch gives its workers no name of a node")
    log: Fact[Log] = Missing("absent", "no logs were read")
    watch: Fact[Watch] = Missing("absent", "no job was watched")
    unreached: Fact[tuple[Unreached, ...]] = Missing("absent", "no hosts were to be reached over ssh")
    meetings: tuple[MeetingView, ...] = ()  # of --meet-in: the nodes that did not meet there, and node 0
    expected_nodes: int | None = None  # what the user demands of the job; None: nothing
    expected_gpus_per_node: int | None = None
    expected: Expected = Expected()  # what a policy (--expect) demands
    of: Literal["nodes", "image"] = "nodes"  # "image": a container image on the machine that builds it
    bench_demands: BenchDemands = BenchDemands()
    authentication: Authentication = Authentication()
    contested: tuple[Contested, ...] = ()
    store_lost: str = ""  # why node 0, or this one, could not hear the others any more, and since which step
    lost_first_node: LostFirstNode | None = None  # from the viewpoint of "one-node" only
    store_changed: tuple[StoreChanged, ...] = ()  # what somebody else changed in the store of the run
    stood_still: tuple[StoodStill, ...] = ()  # processes whose pause explains what is not known
    builds: dict[str, str] = {}  # host -> the ncclcheck that it says it runs, where they differ

    @property
    def lost_run(self) -> str:
        """Return how a node lost the run that it had joined, as a sentence; empty where it did not."""
        return self.store_lost if self.lost_first_node is None else self.lost_first_node.sentence

    def known(self, section: str) -> Iterator[tuple[Node, Any]]:
        """Yield the nodes whose `section` of the facts was read, each with the value."""
        return iter(_by_section(SameObject(self.nodes), section)[0])

    def unread(self, section: str) -> tuple[tuple[Node, Missing], ...]:
        """Return the nodes whose `section` of the facts could not be read, each with the reason."""
        return _by_section(SameObject(self.nodes), section)[1]

    @property
    def unreported(self) -> tuple[Silent, ...]:
        """Return the silent nodes without facts, or without results of the tests between nodes.

        Of a node that fell silent only at the end of the run, all that the checks judge is known.
        """
        reported = {node.host for node in self.nodes} if self.silent else set()
        return tuple(silent for silent in self.silent if silent.phase != "end" or silent.host not in reported)

    @property
    def nnodes(self) -> int:
        """The number of nodes in the job: those that reported, and those that stayed silent."""
        reported = {node.node_rank for node in self.nodes}
        return len(self.nodes) + len({silent.node_rank for silent in self.silent} - reported)

    @property
    def job_size(self) -> int:
        """The number of nodes in the job, or the larger number that a launcher gave.

        A node that did not join the others sees only itself, but its launcher gives the number of nodes.
        """
        claimed_sizes = [launch.nnodes for launch in self.claims]
        claimed_sizes += [launch.nnodes for _, launch in self.known("launch")]
        return max([self.nnodes, *claimed_sizes])


@lru_cache(maxsize=64)
def _by_section(
    nodes: SameObject[tuple[Node, ...]], section: str
) -> tuple[tuple[tuple[Node, Any], ...], tuple[tuple[Node, Missing], ...]]:
    """Return who has read the section, and who has not. Found once: a hundred checks ask of thousands of nodes."""
    values = list(map(attrgetter(f"facts.{section}"), nodes.value))
    pairs = zip(nodes.value, values, strict=True)
    if Missing not in set(map(type, values)):
        return tuple(pairs), ()
    all_pairs = list(pairs)
    known = tuple([(node, value) for node, value in all_pairs if not isinstance(value, Missing)])
    return known, tuple([(node, value) for node, value in all_pairs if isinstance(value, Missing)])
