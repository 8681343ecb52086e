"""What NCCL's RAS thread and the kernel's log tell of a job that stands still: kept, and said where it is an error."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.ras_client import NoAnswerError, address_of, ask
from ncclcheck.facts.gpu.gpu_log import read_gpu_log
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuLog
from ncclcheck.timeouts import GPU_LOG_S, WATCH_GPU_ERROR_S, WATCH_RAS_S

_MOST_TOLD = 4


class MachineView(Struct, frozen=True):
    """Files to keep, by name, and what to say."""

    files: dict[str, bytes] = {}
    remarks: tuple[str, ...] = ()


def view_machine(host: str, ras: str) -> MachineView:
    """Return it. `ras`: where RAS listens (HOST:PORT), "" where another node asks."""
    answer = _ras(ras) if ras else b""
    errors = gpu_errors(host, read_gpu_log(GPU_LOG_S))
    kept = {"ras.log": answer} if answer else {}
    if errors:
        kept["kernel.log"] = "\n".join(errors).encode() + b"\n"
    return MachineView(kept, errors[:_MOST_TOLD])


def gpu_errors(host: str, log: Fact[GpuLog]) -> tuple[str, ...]:
    """Return a line for each error of a GPU or NVSwitch that is so recent that the job may hang for it."""
    if isinstance(log, Missing):
        return ()
    return tuple(
        f"the kernel of {host} logged {error.kind} {error.number} at {error.pci or 'a GPU'} "
        f"{error.seconds_ago:.0f} s ago: {error.text}"
        for error in log.errors
        if error.seconds_ago < WATCH_GPU_ERROR_S
    )


def _ras(address: str) -> bytes:
    try:
        return ask(*address_of(address), Deadline(WATCH_RAS_S))
    except (NoAnswerError, UsageError):
        return b""  # NCCL before 2.24, gloo, or a rank that does not answer
