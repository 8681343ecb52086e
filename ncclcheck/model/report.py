"""`Report`: the whole answer, in the shape of the published JSON, and its exit code."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from ncclcheck.model.authentication import Authentication
from ncclcheck.model.bench import BenchPlan, Comparison, GpuSpeed, Point, RankFailure
from ncclcheck.model.benchmarks.ceiling import Ceiling, Comparable
from ncclcheck.model.benchmarks.isolation import PairIsolation
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.benchmarks.mesh import MeshPlacement
from ncclcheck.model.benchmarks.mesh_bench import MeshPoint, Mix, StepTime
from ncclcheck.model.benchmarks.op import Op
from ncclcheck.model.benchmarks.soak import Soak
from ncclcheck.model.benchmarks.trials import Race, Trial
from ncclcheck.model.events import LogFile
from ncclcheck.model.exit_code import BENCH, BUG, FOUND, INTERRUPTED, PASS, UNKNOWN
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, Outcome
from ncclcheck.model.formats.choices import FailOn
from ncclcheck.model.hardware import GpuNic, HcaChoice
from ncclcheck.model.job.watched import Watch
from ncclcheck.model.snapshot import Coverage, Probe

SCHEMA_VERSION = "1"
Status: TypeAlias = Literal["pass", "fail", "unknown", "error"]
STATUS_OF: dict[int, Status] = {
    PASS: "pass",
    FOUND: "fail",
    BENCH: "fail",
    UNKNOWN: "unknown",
    INTERRUPTED: "unknown",
    BUG: "error",
}
Proof: TypeAlias = Literal["measured", "asked", "rule"]


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """Which program wrote the report."""

    name: str
    version: str


class Verdict(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer: status, exit code and every reason that applies, the deciding one first.

    `fail_on`: from which severity on a finding counts. `required`: codes of the checks that had to run.
    """

    status: Status
    exit_code: int
    reasons: tuple[str, ...]
    fail_on: FailOn = "error"
    required: tuple[str, ...] = ()


class NodeEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A node of the job; `facts` is absent for a silent one."""

    host: str
    node_rank: int
    status: Literal["reported", "silent"]
    facts: NodeFacts | UnsetType = UNSET


class CheckEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A check in the report; its findings are in the list of their own."""

    code: str
    slug: str
    title: str
    outcome: Outcome
    reason: str
    seconds: float


class NcclEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """What NCCL chooses on a host under the job's environment.

    `fails`: NCCL stops with an error. Where it does not, an `interface` or `network` of None is not known.
    """

    host: str
    version: str | None
    library: str | None
    interface: str | None
    address: str | None
    source: Literal["asked", "predicted"]
    reason: str
    candidates: tuple[str, ...] = ()
    network: str | None = (
        None  # IB, Socket, or a plug-in's own name; None where it is not known or NCCL fails
    )
    network_reason: str = ""
    hcas: tuple[HcaChoice, ...] = ()
    gpu_nic: tuple[GpuNic, ...] = ()
    gpudirect: str = ""  # possible through what, or why not, in words; empty where nothing is known
    changes: tuple[str, ...] = ()  # what would change the choice, one sentence each
    fails: bool = False


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """One advised value; None: unset it. No hosts: all of them."""

    name: str
    value: str | None
    hosts: tuple[str, ...]
    why: str
    proof: Proof
    evidence: str


class Advice(Struct, frozen=True, forbid_unknown_fields=True):
    """The environment to use, with the reason and proof of each setting, and notes."""

    env: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()


class Used(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a job really used, by its logs. `hosts` is empty where all have the same value."""

    what: str
    value: str
    hosts: tuple[str, ...] = ()
    differs: bool = False


class GroupPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A collective in one group while all groups of its dimension work: the median time of its slowest rank.

    With its 95 % interval in microseconds; null: too few iterations. `wrong`: elements; null: not verified.
    """

    op: Op
    size_bytes: int
    time_us: float
    low_us: float | None
    high_us: float | None
    busbw_gb_s: float
    wrong: int | None


class MeasuredGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """A parallel group: its ranks and hosts, how many nodes it spans, and what was measured in it."""

    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    nodes: int
    points: tuple[GroupPoint, ...]


class MeasuredDimension(Struct, frozen=True, forbid_unknown_fields=True):
    """A dimension of the mesh, with its groups by their first rank; of many groups the slowest of each collective."""

    name: str
    size: int
    groups: tuple[MeasuredGroup, ...]
    nodes_spanned: int | None  # by the group that spans most; null where the hosts of the ranks are not known
    # the fewest nodes that can hold a group; null where the hosts of the ranks are not known
    least_nodes: int | None
    # time of the slowest group while all others work, over its time alone; the worst of all collectives; null:
    # not measured
    contention: float | None


class MeshReport(Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured in the parallel groups, by dimension and by collective.

    `order`: the mesh as `--mesh` takes it.
    """

    order: str
    dimensions: tuple[MeasuredDimension, ...]
    points: tuple[MeshPoint, ...]
    mix: Mix | None = None
    step: StepTime | None = None


class BenchReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The benchmark as reported."""

    backend: str
    world_size: int
    nodes: int
    plan: BenchPlan
    transport: str
    points: tuple[Point, ...]
    links: tuple[str, ...] = ()
    failures: tuple[RankFailure, ...] = ()
    used: tuple[Used, ...] = ()  # the transport, from NCCL's own log of the run
    ceilings: tuple[Ceiling, ...] = ()
    references: tuple[Comparable, ...] = ()
    # what is not known of the ceiling, whether the backend is the bottleneck instead of the link, and what the
    # figures were compared with
    remarks: tuple[str, ...] = ()
    # what each GPU reached while all others did the same, after the collectives
    gpus: tuple[GpuSpeed, ...] = ()
    mesh: MeshReport | None = None  # what was measured in the job's parallel groups (`bench --mesh`)
    trials: tuple[Trial, ...] | None = None  # the settings that were compared with as-is (`bench --try`)
    race: Race | None = None  # how the comparison of the trials went


class LogReport(Struct, frozen=True, forbid_unknown_fields=True):
    """What `explain` read and made of it beside its findings."""

    outcome: Literal["healthy", "named", "undetermined", "nothing"]
    files: tuple[LogFile, ...]
    used: tuple[Used, ...] = ()
    harmless: tuple[Evidence, ...] = ()  # `expected` says why the line is normal
    dropped_events: int = 0


class FleetCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """A check over several reports: the number of nodes by outcome, and the nodes where it found something or failed.

    `found` counts what comparing the nodes found as well, so a node may be counted as passed and as found.
    """

    code: str
    slug: str
    passed: int
    found: int
    unknown: int
    not_applicable: int
    ignored: int
    found_on: tuple[str, ...]
    unknown_on: tuple[str, ...]


class Fleet(Struct, frozen=True, forbid_unknown_fields=True):
    """What `report merge` made of several reports: how many, the times of the oldest and the newest, and each check."""

    reports: int
    oldest: str
    newest: str
    checks: tuple[FleetCheck, ...]


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """What every renderer gets, whole. The same snapshot and options give the same report, time stamps apart."""

    schema_version: str
    tool: Tool
    command: str
    created: str
    elapsed_s: float
    verdict: Verdict
    nodes: tuple[NodeEntry, ...]
    checks: tuple[CheckEntry, ...]
    findings: tuple[Finding, ...]
    probes: tuple[Probe, ...]
    nccl: tuple[NcclEntry, ...]
    advice: Advice
    bench: BenchReport | None = None
    comparison: Comparison | None = None
    coverage: Fact[Coverage] = Missing("absent", "no probes were made")
    log: LogReport | None = None
    of: Literal["nodes", "image"] = "nodes"  # what was judged
    authentication: Authentication = Authentication()
    isolation: PairIsolation | None = None
    matrix: FabricMatrix | None = None
    fleet: Fleet | None = None
    mesh: MeshPlacement | None = None  # of preflight --mesh
    watch: Watch | None = None
    soak: Soak | None = None


__all__ = ["SCHEMA_VERSION", "Advice", "Evidence", "Finding", "Fix", "Report", "Verdict"]
