"""Child process: prints what NVML knows of the GPUs as JSON, since an NVML call can hang with a sick driver."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Print one JSON object: gpus, a list, or missing and detail."""
    sys.stdout.write(json.dumps(_answer()))


def _answer() -> dict[str, object]:
    try:
        import pynvml
    except ImportError as error:
        return {"missing": "unsupported", "detail": f"the package nvidia-ml-py cannot be imported: {error}"}
    try:
        pynvml.nvmlInit()
        return {"gpus": [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]}
    except pynvml.NVMLError as error:
        return _missing(pynvml, error)


def _gpu(pynvml: Any, index: int) -> dict[str, object]:
    """One GPU, each value on its own: a GPU that fell off the bus still has an index."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        lost = _missing(pynvml, error)
        return {"index": index, "name": lost, "uuid": lost, "pci": lost, "memory_bytes": lost}
    readers: dict[str, Callable[[], object]] = {
        "name": lambda: _text(pynvml.nvmlDeviceGetName(handle)),
        "uuid": lambda: _text(pynvml.nvmlDeviceGetUUID(handle)),
        "pci": lambda: sysfs_address(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId)),
        "memory_bytes": lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    }
    gpu: dict[str, object] = {"index": index}
    for name, read in readers.items():
        try:
            gpu[name] = read()
        except pynvml.NVMLError as error:
            gpu[name] = _missing(pynvml, error)
    return gpu


def sysfs_address(bus_id: str) -> str:
    """NVML's `00000000:1B:00.0` as the kernel writes it: `0000:1b:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _missing(pynvml: Any, error: Any) -> dict[str, object]:
    why = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "absent",
        pynvml.NVML_ERROR_NO_PERMISSION: "denied",
        pynvml.NVML_ERROR_TIMEOUT: "timeout",
        pynvml.NVML_ERROR_NOT_SUPPORTED: "unsupported",
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "unsupported",
    }.get(error.value, "error")
    if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return {"missing": why, "detail": "libnvidia-ml.so.1 is not there: no NVIDIA driver is installed"}
    return {"missing": why, "detail": f"NVML: {error}"}


if __name__ == "__main__":
    main()
