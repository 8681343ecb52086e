"""What a run is asked to do, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.checks.registry import Selection
from ncclcheck.exchange.trust.run_key import RefusedKey, RunKey
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.line.launch_line import LaunchLine
from ncclcheck.model.bench_demands import BenchDemands
from ncclcheck.model.bench_setup import BenchRequest
from ncclcheck.model.benchmarks.isolation import IsolateRequest
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.fact import Fact
from ncclcheck.model.formats.choices import FailOn
from ncclcheck.model.policy.expected import Expected
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.timeouts import JOIN_TIMEOUT_S, PREFLIGHT_TIMEOUT_S

Command: TypeAlias = Literal["preflight", "bench", "run", "isolate", "matrix", "soak", "node"]


class HeadRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes that this process is to check from outside, over ssh, in node-rank order.

    `hosts` are for reports, `targets` what ssh is given (a user before the name), `slots` how many ranks the list gives
    each. `environment` is set on every node.
    """

    hosts: tuple[str, ...]
    targets: tuple[str, ...]
    slots: tuple[int | None, ...]
    ssh: tuple[str, ...]
    python: str
    environment: dict[str, str]
    folder: str  # where each node works, if it has it


class RunOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything one process of a command on nodes is told."""

    command: Command
    flags: LaunchFlags = LaunchFlags()
    gpus_per_node: int | None = None
    expected: Expected | None = None  # what a policy demands; None: no policy was given
    code_paths: tuple[str, ...] = ()
    data_paths: tuple[str, ...] = ()
    shared_paths: tuple[str, ...] = ()
    checkpoint_paths: tuple[str, ...] = ()
    mesh: Fact[Mesh | None] = None
    selection: Selection = Selection()
    fail_on: FailOn = "error"
    timeout_s: float = PREFLIGHT_TIMEOUT_S
    join_timeout_s: float = JOIN_TIMEOUT_S
    bench: BenchRequest = BenchRequest()
    isolate: IsolateRequest | None = (
        None  # pairs of nodes are tested; of bench: only where it found something
    )
    demands: BenchDemands = BenchDemands()  # floors and baseline of the benchmark
    preflight: bool = True  # False: bench --no-preflight
    wants_documents: bool = True  # this process writes --output or --save files
    line: LaunchLine | None = None  # the job's own command line, which is started if all checks pass
    number: int = 0  # of this run among those of its process, which may share a launcher's store
    applies: bool = False  # every process, also a further rank of a node, needs the advice of node 0
    starts: bool = False  # a command is started if all checks pass: the verdict has to be node 0's own
    head: HeadRequest | None = None  # --hosts: the nodes are elsewhere
    meet_in: str | None = None  # --meet-in: the folder in which the nodes meet
    key: RunKey | None = None  # by which the processes of the run know each other; never part of a report
    refused_key: RefusedKey | None = (
        None  # the key that was given and is not used: this process takes no part
    )


def _nobody_waits() -> None:
    """Do nothing: no other process waits."""


class RunResult(Struct, frozen=True):
    """How a run ended on this process.

    `prints`: this process is the one that shows the report. `writes`: it writes the files that were asked for; of a
    node with several ranks only the agent does.

    `release` tells the other nodes the verdict; call it once the report is out. mpirun and srun end the whole job as
    soon as one process has failed, so the others must not leave while the report is still being written.

    `until_free` leaves the master port, and returns once node 0 has: who starts the job before that could join our
    store. Nothing of the run is left in this process then: no listener, no thread that serves.
    """

    report: Report
    saved: Saved
    prints: bool
    release: Callable[[], None] = _nobody_waits
    until_free: Callable[[], None] = _nobody_waits
    writes: bool = True
