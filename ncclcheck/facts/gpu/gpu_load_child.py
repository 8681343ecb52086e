"""Child process: prints the load of each GPU for each line that it reads, so that NVML is initialised once.

A line of JSON on stdout for each line on stdin: {"gpus": [...]}, or {"missing", "detail"} where NVML has no list. It
ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from ncclcheck.facts.gpu.gpus_child import missing_for

_ANSWERS = 1
_READERS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2")


def main() -> None:
    """Answer until the input ends."""
    try:
        import pynvml
    except ImportError as error:
        _say({"missing": "unsupported", "detail": f"the package nvidia-ml-py cannot be imported: {error}"})
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        _say(missing_for(pynvml, error))
        return
    for _ in sys.stdin.buffer:
        _say(_loads(pynvml))


def _say(answer: dict[str, Any]) -> None:
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(_ANSWERS, data) :]


def _loads(nvml: Any) -> dict[str, Any]:
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        return missing_for(nvml, error)
    return {"gpus": [_load(nvml, index) for index in range(count)]}


def _load(nvml: Any, index: int) -> dict[str, Any]:
    """Return the values of this GPU; null for those it does not report."""
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return {}
    return {
        "memory_percent": _value_or_none(nvml, lambda: int(nvml.nvmlDeviceGetUtilizationRates(gpu).memory)),
        "power_mw": _value_or_none(nvml, lambda: int(nvml.nvmlDeviceGetPowerUsage(gpu))),
        "power_limit_mw": _value_or_none(nvml, lambda: int(nvml.nvmlDeviceGetEnforcedPowerLimit(gpu))),
        "pids": next((pids for name in _READERS if (pids := _pids(nvml, name, gpu)) is not None), None),
    }


def _pids(nvml: Any, name: str, gpu: Any) -> Any:
    return _value_or_none(nvml, lambda: [int(process.pid) for process in getattr(nvml, name)(gpu)])


def _value_or_none(nvml: Any, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (nvml.NVMLError, AttributeError):  # an old driver, or an old nvidia-ml-py
        return None


if __name__ == "__main__":
    main()
