"""The state of the GPUs of a job that stands still, from NVML: saved, and reported if a GPU is at fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck.facts.gpu.nvml_gpus import read_nvml
from ncclcheck.model.codec import encode_readable
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.timeouts import WATCH_NVML_S

_MOST_TOLD = 4
_IDLE_PERCENT, _BUSY_PERCENT = 5, 90
_OF_HARDWARE = ("hardware ", "software thermal")  # clock event reasons that nobody has set


class GpuView(Struct, frozen=True):
    """Files to keep, by name, and what to say."""

    files: dict[str, bytes] = {}
    remarks: tuple[str, ...] = ()


def read_gpus(host: str, environ: Mapping[str, str] | None = None) -> GpuView:
    """Return activity, clocks, errors and throttling of each GPU; nothing on a node without a driver.

    A driver that does not answer is itself a reason for a hang, and is said.
    """
    nvml = read_nvml(environ, WATCH_NVML_S)
    stuck = "" if isinstance(nvml.driver, Missing) else nvml.driver.stuck_why
    if isinstance(nvml.gpus, Missing):
        hangs = nvml.gpus.missing == "timeout" or stuck
        return GpuView(
            remarks=(f"the GPU driver of {host} does not answer: {stuck or nvml.gpus.detail}",)
            if hangs
            else ()
        )
    remarks = [*(text for gpu in nvml.gpus for text in _ills(host, gpu)), *_activity(host, nvml.gpus)]
    if stuck:
        remarks.insert(0, f"the GPU driver of {host} does not answer: {stuck}")
    return GpuView({"gpus.json": encode_readable(nvml.gpus).encode() + b"\n"}, tuple(remarks[:_MOST_TOLD]))


def _activity(host: str, gpus: Sequence[Gpu]) -> Iterator[str]:
    """Yield which GPUs idle while others are busy: a GPU that waits in a collective is busy."""
    busy = {gpu.index: gpu.state.busy_percent for gpu in gpus if isinstance(gpu.state.busy_percent, int)}
    idle = [index for index, percent in busy.items() if percent <= _IDLE_PERCENT]
    at_work = [index for index, percent in busy.items() if percent >= _BUSY_PERCENT]
    if idle and at_work:
        yield f"of the GPUs of {host}, {_numbers(idle)} idle while {_numbers(at_work)} are busy"


def _numbers(indices: Sequence[int]) -> str:
    return ", ".join(str(index) for index in indices)


def _ills(host: str, gpu: Gpu) -> Iterator[str]:
    state, name = gpu.state, f"GPU {gpu.index} of {host}"
    if isinstance(gpu.uuid, Missing) and gpu.uuid.missing not in ("unsupported", "absent", "denied"):
        yield f"{name} does not answer NVML: {gpu.uuid.detail}"
        return
    if isinstance(state.ecc_uncorrected_volatile, int) and state.ecc_uncorrected_volatile:
        yield f"{name} counted {state.ecc_uncorrected_volatile} uncorrectable memory errors since its driver was loaded"
    if not isinstance(state.recovery_action, Missing) and state.recovery_action != "none":
        yield f"{name} needs a {state.recovery_action}, according to its driver"
    if not isinstance(state.slowdowns, Missing):
        reasons = [reason for reason in state.slowdowns if reason.startswith(_OF_HARDWARE)]
        if reasons:
            yield f"{name} is throttled: {', '.join(reasons)}"
