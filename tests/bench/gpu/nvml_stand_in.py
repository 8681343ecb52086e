"""A stand-in for pynvml as far as a rank asks it during a benchmark, bound to the signatures of the real one."""

from __future__ import annotations

import threading
from inspect import signature
from types import SimpleNamespace
from typing import Any

import pynvml

THERMAL, IDLE = 0x40, 0x1


class Nvml(SimpleNamespace):
    """One GPU. `masks` are the clock event reasons, one for each look, and the last one from then on."""

    NVMLError = pynvml.NVMLError
    NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL = pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
    NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL = pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL

    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = pynvml.NVML_CLOCK_SM, pynvml.NVML_TEMPERATURE_GPU

    def __init__(self, masks: tuple[int, ...] = (0,), *, links: bool = True) -> None:
        super().__init__()
        self.clock_mhz, self.temperature_c = 1980, 50
        self.looks = 0  # at the clock
        self.masks, self._has_links = list(masks), links
        self.nvlink_errors, self.replays = 100, 7  # since the driver was loaded
        self.looked = threading.Event()  # all masks were seen
        self.address = b""

    def nvmlInit(self) -> None:  # noqa: N802
        """Nothing to do."""
        signature(pynvml.nvmlInit).bind()

    def nvmlDeviceGetHandleByPciBusId(self, address: bytes) -> str:  # noqa: N802
        """Return something."""
        signature(pynvml.nvmlDeviceGetHandleByPciBusId).bind(address)
        self.address = address
        return "handle"

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        """Return the next mask."""
        signature(pynvml.nvmlDeviceGetCurrentClocksEventReasons).bind(handle)
        if len(self.masks) == 1:
            self.looked.set()
            return self.masks[0]
        return self.masks.pop(0)

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:  # noqa: N802
        """Return the clock."""
        signature(pynvml.nvmlDeviceGetClockInfo).bind(handle, clock)
        assert clock == pynvml.NVML_CLOCK_SM
        self.looks += 1
        return self.clock_mhz

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        """Return the temperature."""
        signature(pynvml.nvmlDeviceGetTemperature).bind(handle, sensor)
        return self.temperature_c

    def nvmlDeviceGetPcieReplayCounter(self, handle: str) -> int:  # noqa: N802
        """Return the counter."""
        signature(pynvml.nvmlDeviceGetPcieReplayCounter).bind(handle)
        return self.replays

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[Any]:  # noqa: N802
        """Return each counter, with an outcome of its own."""
        signature(pynvml.nvmlDeviceGetFieldValues).bind(handle, fields)
        outcome = 0 if self._has_links else pynvml.NVML_ERROR_NOT_SUPPORTED
        values = (
            SimpleNamespace(ullVal=self.nvlink_errors if number == 0 else 0) for number in range(len(fields))
        )
        return [SimpleNamespace(nvmlReturn=outcome, value=value) for value in values]
