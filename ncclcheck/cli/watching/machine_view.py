"""What NCCL's RAS thread and the kernel's log tell of a job that stands still: kept, and said where it is an error."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from ncclcheck.cli.watching.evidence import RAS_BEFORE, RAS_NOW
from ncclcheck.cli.watching.gpu_view import GpuView, read_gpus
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.ras_client import NoAnswerError, address_of, ask
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.gpu.gpu_log import read_gpu_log
from ncclcheck.logs.ras import has_advanced, names_one_of, read_status
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuLog
from ncclcheck.timeouts import GPU_LOG_S, WATCH_GPU_ERROR_S, WATCH_NVML_S, WATCH_RAS_S

_MOST_TOLD = 4


class MachineView(Struct, frozen=True):
    """Files to keep, by name, and what to say."""

    files: dict[str, bytes] = {}
    remarks: tuple[str, ...] = ()
    advances: bool = False


def view_machine(host: str, ras: str, before: bytes = b"", pids: Collection[int] = ()) -> MachineView:
    """Return it. `ras`: where RAS listens (HOST:PORT), "" where another node asks; `before`: what it said before.

    `pids`: the ranks here by their own ids (`own_pids_of`), as RAS lists them; it may be that of another job here.
    """
    reading = start(read_gpus, host)
    answer = ask_ras(ras)
    errors = gpu_errors(host, read_gpu_log(GPU_LOG_S))
    gpus = reading.result(WATCH_NVML_S)
    gpus = GpuView() if isinstance(gpus, Missing) else gpus
    files = {name: data for name, data in ((RAS_BEFORE, before), (RAS_NOW, answer)) if data} | gpus.files
    if errors:
        files["kernel.log"] = "\n".join(errors).encode() + b"\n"
    return MachineView(files, (*errors[:_MOST_TOLD], *gpus.remarks), counts_grew(before, answer, pids))


def counts_grew(before: bytes, now: bytes, pids: Collection[int] = ()) -> bool:
    """Return whether the ranks launched collectives between two answers of RAS, as far as both can be read.

    `pids`: at least one of them must be a rank there; empty: any job counts.
    """
    if not (before and now) or before == now:
        return False
    try:
        status = read_status(now)
        return has_advanced(read_status(before), status) and (not pids or names_one_of(status, pids))
    except DecodeError:
        return False


def ask_ras(address: str) -> bytes:
    """Return what NCCL's RAS says there; nothing where the address is "", or nobody answers."""
    try:
        return ask(*address_of(address), Deadline(WATCH_RAS_S)) if address else b""
    except (NoAnswerError, UsageError):
        return b""  # NCCL before 2.24, gloo, or a rank that does not answer


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
