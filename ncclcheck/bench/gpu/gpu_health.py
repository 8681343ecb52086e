"""What NVML says of this rank's GPU while the benchmark runs: why its clock is lower, and errors of its links."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.gpu.gpu_values import bus_address, slowdown_words
from ncclcheck.model.bench import GpuHealth
from ncclcheck.model.fact import Fact, Missing

_ADDRESS_BYTES = 64
_LONGEST_TEXT = 200
# nvml.h: NVML_FI_DEV_NVLINK_*_ERROR_COUNT_TOTAL, of all links of a GPU together
_NVLINK_FIELDS = tuple(
    f"NVML_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL" for kind in ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
)


class GpuLook(Struct, frozen=True):
    """What NVML said of a GPU since it was last looked at: reasons for a lower clock, clock, heat, and new errors.

    `clock_mhz`: the lowest of its multiprocessors; 0: not known. `temperature_c`: the highest.
    """

    slowdowns: tuple[str, ...] = ()
    clock_mhz: int = 0
    temperature_c: int = 0
    nvlink_errors: int = 0
    pcie_replays: int = 0


class _Sample(Struct, frozen=True):
    """What was seen since the last look. The counters are since the driver was loaded; None: not read yet."""

    mask: int = 0
    clock_mhz: int = 0
    temperature_c: int = 0
    links: int | None = None
    replays: int | None = None


class HealthWatch:
    """Asks NVML in a thread of its own until `take`. A class because of the thread, which may hang in the driver.

    The clock event reasons hold for a moment only, so they are asked for again and again; the counters at the start and
    at the end. Asking takes some microseconds of a core, five times a second.
    """

    def __init__(self, address: str, nvml: Callable[[], Any]) -> None:
        self.pci = bus_address(address) if address else ""
        self._nvml = nvml
        self._health = GpuHealth(self.pci)
        self._ending, self._ended = threading.Event(), threading.Event()
        self._lock, self._is_looked_at = threading.Lock(), False
        self._sample = self._told = _Sample()
        if address:
            threading.Thread(target=self._watch, name="gpu-health", daemon=True).start()
        else:
            self._ended.set()

    def take(self) -> GpuHealth:
        """Return what NVML said up to now, and ask no more. Missing for what it did not say in time."""
        self._ending.set()
        if self._ended.wait(timeouts.GPU_HEALTH_S):
            return self._health
        hung = Missing("timeout", f"NVML did not answer within {timeouts.GPU_HEALTH_S:.0f} s")
        return GpuHealth(self.pci, hung, hung, hung)

    def look(self) -> GpuLook:
        """Return what was seen since the last look, at once. From the first one on, clock and heat are read as well."""
        with self._lock:
            seen, self._sample = self._sample, _Sample(links=self._sample.links, replays=self._sample.replays)
            before, self._told = self._told, seen
            self._is_looked_at = True
        return GpuLook(
            tuple(slowdown_words(seen.mask)),
            seen.clock_mhz,
            seen.temperature_c,
            _more(before.links, seen.links),
            _more(before.replays, seen.replays),
        )

    def _note(self, nvml: Any, handle: Any, mask: Fact[int]) -> None:
        """Add the present state to what the next look returns."""
        if not self._is_looked_at:
            return
        clock = _first([nvml.nvmlDeviceGetClockInfo])(nvml, handle, nvml.NVML_CLOCK_SM)
        heat = _first([nvml.nvmlDeviceGetTemperature])(nvml, handle, nvml.NVML_TEMPERATURE_GPU)
        links, replays = _nvlink_errors(nvml, handle), _pcie_replays(nvml, handle)
        with self._lock:
            before = self._sample
            clocks = [mhz for mhz in (before.clock_mhz, clock) if not isinstance(mhz, Missing) and mhz > 0]
            self._sample = _Sample(
                before.mask if isinstance(mask, Missing) else before.mask | mask,
                min(clocks, default=0),
                before.temperature_c if isinstance(heat, Missing) else max(before.temperature_c, heat),
                before.links if isinstance(links, Missing) else links,
                before.replays if isinstance(replays, Missing) else replays,
            )

    def _watch(self) -> None:
        try:
            self._health = self._asked()
        except (
            Exception
        ) as error:  # NVML's own, or no such package: what it says is evidence, not the benchmark
            why = Missing("error", f"NVML: {type(error).__name__}: {error}"[:_LONGEST_TEXT])
            self._health = GpuHealth(self.pci, why, why, why)
        self._ended.set()

    def _asked(self) -> GpuHealth:
        nvml = self._nvml()
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByPciBusId(self.pci.encode())
        links_before, pcie_before = _nvlink_errors(nvml, handle), _pcie_replays(nvml, handle)
        reasons = _reasons(nvml, handle)
        mask: Fact[int] = reasons()
        while not self._ending.wait(timeouts.GPU_LOOK_S):
            now = reasons()
            mask = _joined(mask, now)
            self._note(nvml, handle, now)
        mask = _joined(mask, reasons())
        return GpuHealth(
            self.pci,
            mask if isinstance(mask, Missing) else tuple(slowdown_words(mask)),
            _grown(links_before, _nvlink_errors(nvml, handle)),
            _grown(pcie_before, _pcie_replays(nvml, handle)),
        )


def pynvml() -> Any:
    """Return NVIDIA's binding of NVML. Raises ImportError where it is not installed."""
    import pynvml

    return pynvml


def cuda_address(ordinal: int) -> str:
    """Return the PCI address of a GPU by CUDA's number, which CUDA_VISIBLE_DEVICES changes; "" where libcuda is not."""
    name = ctypes.create_string_buffer(_ADDRESS_BYTES)
    device = ctypes.c_int()
    with suppress(OSError, AttributeError):
        cuda = ctypes.CDLL("libcuda.so.1")
        if cuda.cuDeviceGet(ctypes.byref(device), ordinal) == 0:
            cuda.cuDeviceGetPCIBusId(name, _ADDRESS_BYTES, device)
    return name.value.decode("ascii", "replace")


def _reasons(nvml: Any, handle: Any) -> Callable[[], Fact[int]]:
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    return lambda: _first(getattr(nvml, name, None) for name in names)(nvml, handle)


def _first(functions: Iterable[Any]) -> Callable[..., Fact[int]]:
    """Return the reader that asks these functions in turn until one of them answers."""

    def read(nvml: Any, handle: Any, *words: Any) -> Fact[int]:
        why = Missing("unsupported", "this nvidia-ml-py does not have it")
        for function in functions:
            if function is None:
                continue
            try:
                return int(function(handle, *words))
            except nvml.NVMLError as error:
                why = Missing("unsupported", f"NVML: {error}")
        return why

    return read


def _nvlink_errors(nvml: Any, handle: Any) -> Fact[int]:
    """Return all NVLink errors that the GPU counted; Missing where it has no NVLink, or does not count them so."""
    fields = [getattr(nvml, name) for name in _NVLINK_FIELDS if hasattr(nvml, name)]
    try:
        values = nvml.nvmlDeviceGetFieldValues(handle, fields)
    except nvml.NVMLError as error:
        return Missing("unsupported", f"NVML: {error}")
    counts = [int(value.value.ullVal) for value in values if value.nvmlReturn == 0]
    return sum(counts) if counts else Missing("unsupported", "the driver counts no NVLink errors of this GPU")


def _pcie_replays(nvml: Any, handle: Any) -> Fact[int]:
    return _first([nvml.nvmlDeviceGetPcieReplayCounter])(nvml, handle)


def _joined(mask: Fact[int], more: Fact[int]) -> Fact[int]:
    if isinstance(mask, Missing):
        return more
    return mask if isinstance(more, Missing) else mask | more


def _grown(before: Fact[int], after: Fact[int]) -> Fact[int]:
    if isinstance(before, Missing):
        return before
    return after if isinstance(after, Missing) else max(0, after - before)


def _more(before: int | None, after: int | None) -> int:
    return 0 if before is None or after is None else max(0, after - before)
