"""What NVML, the kernel log and torch say of a node's GPUs: the state of each, the driver, errors, a piece of work."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.fact import NOT_READ, Fact

RecoveryAction: TypeAlias = Literal[
    "none",
    "reset",
    "reboot",
    "drain-p2p",
    "drain-and-reset",
    "recover-imex-domain",
    "bus-reset",
    "system-reboot",
]
FabricState: TypeAlias = Literal["not-supported", "not-started", "in-progress", "completed"]
FabricHealth: TypeAlias = Literal["not-supported", "healthy", "unhealthy", "limited-capacity"]
ComputeMode: TypeAlias = Literal["default", "exclusive-thread", "prohibited", "exclusive-process"]
WorkOutcome: TypeAlias = Literal["ok", "wrong-result", "failed", "hung"]
LogSource: TypeAlias = Literal["Xid", "SXid"]
OPENING_STAGE = "open the GPU"  # of GpuWork.detail: the stage in which a GPU that nobody used is started


class GpuProcess(Struct, frozen=True, forbid_unknown_fields=True):
    """A process with a compute context on a GPU. `own`: of this run, or started by it.

    `name` is Missing where the process belongs to another pid namespace: NVML then gives only its number.
    """

    pid: int
    used_bytes: Fact[int]
    name: Fact[str] = NOT_READ
    own: bool = False


class NvLink(Struct, frozen=True, forbid_unknown_fields=True):
    """One NVLink of a GPU, as nvmlDeviceGetNvLinkState reports it.

    `remote`: the PCI address of what an active one leads to, another GPU or a switch, as
    nvmlDeviceGetNvLinkRemotePciInfo gives it.
    """

    link: int
    active: Fact[bool]
    remote: Fact[str] = NOT_READ


class PeerAccess(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether this GPU may read the memory of the GPU `peer` (its index). `status`: NVML's word, `ok` where it may."""

    peer: int
    status: str


class Fabric(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the GPU has come in joining its NVLink fabric."""

    state: FabricState
    status: int  # NVML return code; 0: joined
    health: Fact[FabricHealth] = NOT_READ  # Missing with a driver that reports only state and status
    bandwidth_degraded: Fact[bool] = NOT_READ  # Missing as `health`
    # cluster UUID and clique, which GPUs of several nodes share if NVLink connects them; empty: it connects one
    # node only
    domain: str = ""


class GpuState(Struct, frozen=True, forbid_unknown_fields=True):
    """What NVML reports about one GPU; a value that it does not support is Missing("unsupported")."""

    # without what the driver reserves, where the driver reports that separately
    memory_used_bytes: Fact[int] = NOT_READ
    processes: Fact[tuple[GpuProcess, ...]] = NOT_READ
    ecc: Fact[bool] = NOT_READ
    # uncorrectable errors in all memories since the driver was loaded
    ecc_uncorrected_volatile: Fact[int] = NOT_READ
    ecc_uncorrected_aggregate: Fact[int] = NOT_READ  # uncorrectable errors in all memories, ever
    remap_pending: Fact[bool] = NOT_READ  # rows wait for a reset to be remapped
    remap_failed: Fact[bool] = NOT_READ  # rows cannot be repaired
    recovery_action: Fact[RecoveryAction] = NOT_READ
    slowdowns: Fact[tuple[str, ...]] = NOT_READ  # NVML's clock event reasons, in its words
    sm_clock_mhz: Fact[int] = NOT_READ
    max_sm_clock_mhz: Fact[int] = NOT_READ
    power_w: Fact[float] = NOT_READ
    power_limit_w: Fact[float] = NOT_READ
    temperature_c: Fact[int] = NOT_READ
    busy_percent: Fact[int] = NOT_READ  # of the last second at most, some kernel ran
    mig: Fact[bool] = NOT_READ
    persistence: Fact[bool] = NOT_READ
    compute_mode: Fact[ComputeMode] = NOT_READ
    compute_capability: Fact[str] = NOT_READ  # 9.0
    pcie_generation: Fact[int] = NOT_READ
    pcie_width: Fact[int] = NOT_READ
    max_pcie_generation: Fact[int] = NOT_READ  # of the device in this slot
    max_pcie_width: Fact[int] = NOT_READ
    nvlinks: Fact[tuple[NvLink, ...]] = NOT_READ  # empty: this GPU has none
    fabric: Fact[Fabric] = NOT_READ
    peers: Fact[tuple[PeerAccess, ...]] = NOT_READ


class GpuDriver(Struct, frozen=True, forbid_unknown_fields=True):
    """What NVML says of the driver, and how it answered. `cuda` is the CUDA of the libcuda that a program gets here.

    `answered_after_s`: to the end of nvmlInit. `stuck_call`: the call in which NVML hung or died; empty: it answered
    all.
    """

    version: Fact[str]
    cuda: Fact[str]  # 12.8
    answered_after_s: Fact[float]
    stuck_call: str = ""
    stuck_why: str = ""
    imex_channels: Fact[tuple[int, ...]] = (
        NOT_READ  # /dev/nvidia-caps-imex-channels; empty: none may be used here
    )


class LoggedError(Struct, frozen=True, forbid_unknown_fields=True):
    """An Xid (of a GPU) or SXid (of an NVSwitch) in the kernel's log. `pci` is written as in /sys, if it is given.

    `seconds_ago` is when it was last seen, counted back from the reading; `times` how often in all with one number
    and address.
    """

    kind: LogSource
    number: int
    pci: str
    seconds_ago: float
    text: str
    times: int = 1


class GpuLog(Struct, frozen=True, forbid_unknown_fields=True):
    """The kernel log since boot, as far as it is kept. `source`: what it was read from."""

    source: str
    errors: tuple[LoggedError, ...]


class TorchGpus(Struct, frozen=True, forbid_unknown_fields=True):
    """What torch sees with the environment of the job: how many GPUs, and for which architectures it was built.

    `nccl`: the NCCL that it was compiled with; Missing "absent" for a torch without NCCL.
    """

    count: Fact[int]
    architectures: Fact[tuple[str, ...]]  # sm_80, compute_90
    nccl: Fact[str] = NOT_READ


class GpuWork(Struct, frozen=True, forbid_unknown_fields=True):
    """A small multiplication on one GPU, compared with its exact result. `ordinal` counts what torch sees."""

    ordinal: int
    outcome: WorkOutcome
    uuid: Fact[str]
    seconds: float
    detail: str = ""


__all__ = [
    "Fabric",
    "GpuDriver",
    "GpuLog",
    "GpuProcess",
    "GpuState",
    "GpuWork",
    "LoggedError",
    "NvLink",
    "PeerAccess",
    "TorchGpus",
]
