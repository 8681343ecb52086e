"""Results of the benchmark: the plan, the points, and the culprits, in units that the names state."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from ncclcheck.model.benchmarks.mesh_bench import MeshBench, MeshPlan
from ncclcheck.model.benchmarks.op import Backend as Backend
from ncclcheck.model.benchmarks.op import Op as Op
from ncclcheck.model.benchmarks.soak import Soak, SoakPlan
from ncclcheck.model.benchmarks.trials import Race, Trial
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import LoggedError

ComparisonVerdict: TypeAlias = Literal[
    "faster", "slower", "no effect", "as-is failed", "advised failed", "both failed", "not measured"
]
FailureState: TypeAlias = Literal["died", "stopped", "late", "lost", "error", "stuck", "hung"]


class BenchPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """What the benchmark measures. `sizes_bytes` are nccl-tests' sizes. `iters` is per point; None: each decides.

    `cuda_graph`: the calls are captured in CUDA graphs, and their replay is measured (nccl only). `mesh`: what is
    measured in the parallel groups of a job, after that. `soak`: blocks of the collectives for so long instead.
    """

    backend: Backend
    ops: tuple[Op, ...]
    sizes_bytes: tuple[int, ...]
    dtype: str
    warmup: int
    iters: int | None
    budget_s: float
    verify: bool
    cuda_graph: bool = False
    mesh: MeshPlan | None = None
    soak: SoakPlan | None = None


class TimeUs(Struct, frozen=True, forbid_unknown_fields=True):
    """Spread of the iteration times of one point, each the slowest rank's, in microseconds. p99 needs 100 samples.

    On GPUs the mean of sizes up to 64 MiB is of loops without an event between the calls, as nccl-tests' is: an event
    takes a microsecond itself, so the mean may lie below `min`.
    """

    mean: float
    min: float
    p50: float
    p95: float
    p99: float | None
    max: float


class RankTime(Struct, frozen=True, forbid_unknown_fields=True):
    """One rank in one point: how long it kept the others waiting, and its own mean time in the call.

    Per iteration, too (`measure/lateness.py`): `stalled_us`, how long its process did not run at all though it should
    have; `waited_us`, how long its threads waited for a core that another process used.
    """

    rank: int
    host: str
    late_us: float
    mean_us: float
    stalled_us: float = 0.0
    waited_us: float = 0.0
    clock_mhz: float | None = None  # of its GPU, measured while it held the stream; null: it has none


class WrongElement(Struct, frozen=True, forbid_unknown_fields=True):
    """The first wrong element that a rank found in a timed buffer; offset in elements of the receive buffer."""

    rank: int
    iteration: int
    offset: int
    got: str  # text: a damaged float may be no number
    expected: str


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """One op at one size. `wrong_ranks`: those whose buffers held the wrong elements.

    algbw and busbw are nccl-tests' (GetBw in `src/all_reduce.cu` and its like) of the mean iteration, in 1e9 B/s. A
    repeat of the run should find a busbw between `busbw_low_gb_s` and `busbw_high_gb_s`; null: too few iterations.
    """

    op: Op
    size_bytes: int
    count: int
    dtype: str
    iters: int
    time_us: TimeUs
    first_us: float
    algbw_gb_s: float
    busbw_gb_s: float
    wrong: int | None  # elements of the timed buffers that were wrong; None: not verified
    unstable: str | None
    ranks: tuple[RankTime, ...]
    first_wrong: WrongElement | None = None
    wrong_ranks: tuple[int, ...] = ()
    busbw_low_gb_s: float | None = None
    busbw_high_gb_s: float | None = None
    samples_us: tuple[float, ...] | UnsetType = UNSET  # only in what --save writes: see measure/samples.py


class LinkSpeed(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"from_host": "from", "to_host": "to"}
):
    """The best of a few transfers from one rank to another, with nothing else between their nodes, in 1e9 B/s.

    `cpu_share`: for which part of the time the two ends together computed, or waited for a core: near 1 the CPU was the
    limit, not the link.
    """

    from_rank: int
    from_host: str
    to_rank: int
    to_host: str
    gb_s: float
    cpu_share: float = 0.0


class CoreSpeed(Struct, frozen=True, forbid_unknown_fields=True):
    """How long one rank took for a fixed piece of work while all other ranks slept: wall time and core time.

    Each is the least of a few tries. `core_share`: the largest part of the time of one try in which the rank had its
    core; 0: not known, and then it follows from the other two. `claim`: ranks with the same number may use the same
    cores of one machine alike, so which of them waits for a core is chance; 0: not known.
    """

    rank: int
    host: str
    work_us: float
    core_us: float
    claim: int = 0
    core_share: float = 0.0


class GpuHealth(Struct, frozen=True, forbid_unknown_fields=True):
    """What NVML said of one GPU while the benchmark ran. `pci` as in /sys; "" where it is not known.

    `slowdowns`: NVML's clock event reasons that held during the run, whenever it was asked. The counters: by how much
    they grew during the run.
    """

    pci: str = ""
    slowdowns: Fact[tuple[str, ...]] = Missing("absent", "NVML was not asked")
    nvlink_errors: Fact[int] = Missing("absent", "NVML was not asked")
    pcie_replays: Fact[int] = Missing("absent", "NVML was not asked")


class GpuSpeed(Struct, frozen=True, forbid_unknown_fields=True):
    """What one rank's GPU does while the GPUs of all ranks do the same.

    `clock_mhz`: its true clock right after the multiplications. `device_gb_s`: bytes copied within its memory, and
    `host_gb_s`: from pinned memory of its host, in 1e9 B/s. 0: not measured.
    """

    rank: int
    host: str
    model: str
    clock_mhz: float
    compute_tflop_s: float  # half precision matrix multiplication
    device_gb_s: float
    host_gb_s: float
    health: GpuHealth = GpuHealth()


class Isolation(Struct, frozen=True, forbid_unknown_fields=True):
    """The speed of each rank, GPU and link alone, which a collective of all cannot separate."""

    cores: tuple[CoreSpeed, ...] = ()
    links: tuple[LinkSpeed, ...] = ()
    gpus: tuple[GpuSpeed, ...] = ()  # of nccl only


LEFT_EARLY = "ncclcheck was interrupted there and ended its workers"


class RankFailure(Struct, frozen=True, forbid_unknown_fields=True):
    """A rank that failed or hung: where it was last seen, and how its process ended."""

    rank: int
    host: str
    state: FailureState
    where: str  # "all_reduce 64M, iteration 3", "joining the group", ...
    detail: str
    waited_s: float

    @property
    def is_interrupted(self) -> bool:
        """Return whether somebody ended ncclcheck on that node (Ctrl-C, a signal), which says nothing of the node."""
        return self.detail == LEFT_EARLY


class HangEvidence(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node saw of its ranks before it ended them.

    `ras`: what NCCL's RAS threads said of all ranks; `behind`: ranks that they call behind or gone, with the reason.
    `gpu_errors`: what the kernel logged since the ranks were started.
    """

    ras: Fact[str]
    behind: tuple[tuple[int, str], ...]
    gpu_errors: Fact[tuple[LoggedError, ...]]


class NodeLog(Struct, frozen=True, forbid_unknown_fields=True):
    """What the workers' own NCCL log on one node says about their transport; Missing where there is none.

    `hang`: what was seen of ranks that did not come to their end; None: all did.
    """

    host: str
    processes: Fact[tuple[Process, ...]]
    hang: HangEvidence | None = None


class BenchResult(Struct, frozen=True, forbid_unknown_fields=True):
    """The benchmark of a run. `failures` is empty when every rank finished, or no rank is known to be at fault.

    `unfinished` says why points of the plan are missing though no rank is to blame: the time ran out. Empty: none are.
    `refused`: how many of them the backend does not do at all.
    """

    backend: Backend
    world_size: int
    nodes: int
    plan: BenchPlan
    transport: str
    points: tuple[Point, ...]
    links: tuple[str, ...] = ()
    failures: tuple[RankFailure, ...] = ()
    started: bool = True
    unfinished: str = ""
    refused: int = 0
    isolation: Isolation = Isolation()
    environment: dict[
        str, dict[str, str | None]
    ] = {}  # host -> what the workers ran with beyond the job's environment (None: unset)
    places: dict[str, tuple[str, str]] = {}  # host -> (interface, address) bound; empty: its own choice
    logs: tuple[NodeLog, ...] = ()  # of nccl only
    mesh: MeshBench | None = None
    soak: Soak | None = None
    trials: tuple[Trial, ...] | None = None  # bench --try: as-is, its twin, and what was tried
    race: Race | None = None  # how they went
    undead: tuple[str, ...] = ()  # workers that SIGKILL did not end: "rank 3 (pid 4711, state D) on node02"


class Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """One of two environments that were compared, and how fast the collective was in it."""

    # host -> variable -> value (None: unset), on top of the job's environment; empty: as-is
    changes: dict[str, dict[str, str | None]]
    places: dict[str, tuple[str, str]]  # host -> (interface, address) that was used
    times_us: tuple[float, ...] = ()  # mean iteration time of the slowest rank, one per round
    busbw_gb_s: float | None = None
    failure: str = ""  # why there are no times, or no more of them, with who was where; empty otherwise


class Comparison(Struct, frozen=True, forbid_unknown_fields=True):
    """The same collective as-is and advised, in alternating rounds."""

    backend: Backend
    op: Op
    size_bytes: int
    world_size: int
    rounds: int
    as_is: Variant
    advised: Variant
    # as-is time over advised time, median over rounds; None where one of the two has no times
    speedup: float | None = None
    speedup_low: float | None = None  # of the 95 % interval of that median
    speedup_high: float | None = None  # of the same interval
    verdict: ComparisonVerdict = "not measured"  # "no effect" where the interval holds 1
