"""What a run is asked to do, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.checks.registry import Selection
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.bench import Op
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved

Command: TypeAlias = Literal["preflight", "bench", "run"]
FailOn: TypeAlias = Literal["error", "warning", "never"]
# The environment to measure under: the job's own, the advised one, or the job's where it is proven to work, else the
# advised one.
Under: TypeAlias = Literal["as-is", "advised", "proven"]


class BenchRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What the user wants measured; the backend is settled when it is known which nodes have GPUs."""

    sizes_bytes: tuple[int, ...] = (1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24)
    ops: tuple[Op, ...] = ("all_reduce", "all_gather")
    backend: Literal["auto", "gloo", "nccl"] = "auto"
    dtype: str = "float32"
    iters: int | None = None
    warmup: int = 5
    budget_s: float = 20.0
    verify: bool = True
    under: Under = "proven"


class RunOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything one process of `preflight`, `bench` or `run` is told."""

    command: Command
    flags: LaunchFlags = LaunchFlags()
    gpus_per_node: int | None = None
    code_paths: tuple[str, ...] = ()
    data_paths: tuple[str, ...] = ()
    shared_paths: tuple[str, ...] = ()
    selection: Selection = Selection()
    fail_on: FailOn = "error"
    timeout_s: float = 60.0
    join_timeout_s: float = 30.0
    bench: BenchRequest = BenchRequest()
    preflight: bool = True  # False: bench --no-preflight
    wants_documents: bool = True  # this process writes --output or --save files


def _nobody_waits() -> None:
    """There is nobody to release."""


class Ended(Struct, frozen=True):
    """How a run ended on this process.

    `prints`: this process is the one that shows the report. `writes`: it writes the files that were asked for; of a
    node with several ranks only the agent does.

    `release` tells the other nodes the verdict; call it once the report is out. mpirun and srun end the whole job as
    soon as one process has failed, so the others must not leave while the report is still being written.
    """

    report: Report
    saved: Saved
    prints: bool
    release: Callable[[], None] = _nobody_waits
    writes: bool = True
