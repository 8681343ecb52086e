"""Which NVML functions give which value of a GPU, the newest first, with what older drivers and packages have."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

Reader: TypeAlias = tuple[str, Callable[[], Any]]  # the function's name, and a call of it
Readers: TypeAlias = dict[str, tuple[Reader, ...]]  # field -> the ways to read it

_FI_RECOVERY_ACTION = "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"
# nvml.h: nvmlDeviceGpuRecoveryAction_t.
_RECOVERY_ACTIONS = (
    "none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex-domain", "bus-reset", "system-reboot",
)  # fmt: skip
# nvml.h: nvmlClocksEventReason*. An idle GPU runs slowly as it should.
_SLOWDOWNS = {
    0x2: "applications clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}
_IDLE = 0x1  # nvml.h: nvmlClocksEventReasonGpuIdle
# nvml.h: nvmlComputeMode_t.
_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
_FABRIC_STATES = ("not-supported", "not-started", "in-progress", "completed")
_FABRIC_HEALTH = ("not-supported", "healthy", "unhealthy", "limited-capacity")
# nvml.h: nvmlGpuP2PStatus_t.
_PEER_STATUS = (
    "ok", "chipset not supported", "GPU not supported", "topology not supported", "disabled by registry key",
    "not supported", "unknown",
)  # fmt: skip
_READ_ACCESS = 0  # nvml.h: NVML_P2P_CAPS_INDEX_READ
_UNTOLD = {"missing": "unsupported", "detail": "this driver does not tell it"}


def identity(nvml: Any, handle: Any) -> Readers:
    """Return which GPU it is."""
    return {
        "name": (("nvmlDeviceGetName", lambda: _text(nvml.nvmlDeviceGetName(handle))),),
        "uuid": (("nvmlDeviceGetUUID", lambda: _text(nvml.nvmlDeviceGetUUID(handle))),),
        "pci": (
            ("nvmlDeviceGetPciInfo", lambda: bus_address(_text(nvml.nvmlDeviceGetPciInfo(handle).busId))),
        ),
        "memory_bytes": (
            ("nvmlDeviceGetMemoryInfo", lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        ),
        "compute_capability": (
            ("nvmlDeviceGetCudaComputeCapability", lambda: _version(nvml.nvmlDeviceGetCudaComputeCapability(handle))),
        ),
    }  # fmt: skip


def state(nvml: Any, handle: Any) -> Readers:
    """Return the state of the GPU, without its links."""
    return _use(nvml, handle) | _faults(nvml, handle) | _speed(nvml, handle) | _mode(nvml, handle)


def _use(nvml: Any, handle: Any) -> Readers:
    return {
        "memory_used_bytes": (
            (
                "nvmlDeviceGetMemoryInfo_v2",
                lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used),
            ),
            ("nvmlDeviceGetMemoryInfo", lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
        ),
        "processes": (
            (
                "nvmlDeviceGetComputeRunningProcesses_v3",
                lambda: _processes(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)),
            ),
            (
                "nvmlDeviceGetComputeRunningProcesses_v2",
                lambda: _processes(nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)),
            ),
        ),
    }


def _faults(nvml: Any, handle: Any) -> Readers:
    def errors(counter: int) -> int:
        # nvml.h: NVML_MEMORY_ERROR_TYPE_UNCORRECTED is 1; NVML_VOLATILE_ECC 0, NVML_AGGREGATE_ECC 1.
        return int(nvml.nvmlDeviceGetTotalEccErrors(handle, 1, counter))

    def remapped(part: int) -> bool:
        return bool(nvml.nvmlDeviceGetRemappedRows(handle)[part])

    return {
        "ecc": (("nvmlDeviceGetEccMode", lambda: bool(nvml.nvmlDeviceGetEccMode(handle)[0])),),
        "ecc_uncorrected_volatile": (("nvmlDeviceGetTotalEccErrors(volatile)", lambda: errors(0)),),
        "ecc_uncorrected_aggregate": (("nvmlDeviceGetTotalEccErrors(aggregate)", lambda: errors(1)),),
        "remap_pending": (("nvmlDeviceGetRemappedRows(pending)", lambda: remapped(2)),),
        "remap_failed": (("nvmlDeviceGetRemappedRows(failure)", lambda: remapped(3)),),
        "recovery_action": (("nvmlDeviceGetFieldValues(recovery action)", lambda: _recovery(nvml, handle)),),
        "fabric": (
            ("nvmlDeviceGetGpuFabricInfoV(v3)", lambda: _fabric(nvml, handle, "c_nvmlGpuFabricInfo_v3_t")),
            ("nvmlDeviceGetGpuFabricInfoV(v2)", lambda: _fabric(nvml, handle, "c_nvmlGpuFabricInfo_v2_t")),
            ("nvmlDeviceGetGpuFabricInfo", lambda: _fabric(nvml, handle, "c_nvmlGpuFabricInfo_t")),
        ),
    }


def _speed(nvml: Any, handle: Any) -> Readers:
    sm_clock = 1  # nvml.h: NVML_CLOCK_SM
    return {
        "slowdowns": (
            (
                "nvmlDeviceGetCurrentClocksEventReasons",
                lambda: slowdown_words(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
            ),
            (
                "nvmlDeviceGetCurrentClocksThrottleReasons",
                lambda: slowdown_words(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
            ),
        ),
        "sm_clock_mhz": (("nvmlDeviceGetClockInfo", lambda: int(nvml.nvmlDeviceGetClockInfo(handle, sm_clock))),),
        "max_sm_clock_mhz": (
            ("nvmlDeviceGetMaxClockInfo", lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, sm_clock))),
        ),
        "power_w": (("nvmlDeviceGetPowerUsage", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),),
        "power_limit_w": (
            ("nvmlDeviceGetEnforcedPowerLimit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
        ),
        "temperature_c": (
            ("nvmlDeviceGetTemperature", lambda: int(nvml.nvmlDeviceGetTemperature(handle, 0))),
        ),
        "busy_percent": (
            ("nvmlDeviceGetUtilizationRates", lambda: int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        ),
        "pcie_generation": (
            ("nvmlDeviceGetCurrPcieLinkGeneration", lambda: int(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))),
        ),
        "pcie_width": (
            ("nvmlDeviceGetCurrPcieLinkWidth", lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
        ),
        "max_pcie_generation": (
            ("nvmlDeviceGetMaxPcieLinkGeneration", lambda: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))),
        ),
        "max_pcie_width": (
            ("nvmlDeviceGetMaxPcieLinkWidth", lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
        ),
    }  # fmt: skip


def _mode(nvml: Any, handle: Any) -> Readers:
    return {
        "mig": (("nvmlDeviceGetMigMode", lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0])),),
        "compute_mode": (
            ("nvmlDeviceGetComputeMode", lambda: _compute_mode(nvml.nvmlDeviceGetComputeMode(handle))),
        ),
        "persistence": (
            ("nvmlDeviceGetPersistenceMode", lambda: bool(nvml.nvmlDeviceGetPersistenceMode(handle))),
        ),
    }


def peer_status(nvml: Any, handle: Any, peer: Any) -> str:
    """Return NVML's word for whether the GPU may read the peer's memory."""
    return _word(_PEER_STATUS, nvml.nvmlDeviceGetP2PStatus(handle, peer, _READ_ACCESS), "unknown")


def bus_address(bus_id: str) -> str:
    """Return NVML's `00000000:1B:00.0` as the kernel writes it: `0000:1b:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _processes(found: list[Any]) -> list[dict[str, object]]:
    return [
        {
            "pid": int(process.pid),
            "used_bytes": _UNTOLD if process.usedGpuMemory is None else int(process.usedGpuMemory),
        }
        for process in found
    ]


def _recovery(nvml: Any, handle: Any) -> object:
    value = nvml.nvmlDeviceGetFieldValues(handle, [getattr(nvml, _FI_RECOVERY_ACTION)])[0]
    if value.nvmlReturn:
        # The call itself succeeds; each field has an outcome of its own. An old driver does not know the field.
        unknown = value.nvmlReturn == nvml.NVML_ERROR_INVALID_ARGUMENT
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED if unknown else value.nvmlReturn)
    number = int(value.value.uiVal)
    if number < len(_RECOVERY_ACTIONS):
        return _RECOVERY_ACTIONS[number]
    return {"missing": "error", "detail": f"NVML: recovery action {number} is not known"}


def slowdown_words(mask: int) -> list[str]:
    """Return NVML's words for the reasons; a reason newer than this table keeps its number."""
    unknown = mask & ~(_IDLE | sum(_SLOWDOWNS))
    named = [word for bit, word in _SLOWDOWNS.items() if mask & bit]
    return [*named, f"unknown reason {unknown:#x}"] if unknown else named


def _fabric(nvml: Any, handle: Any, structure: str) -> dict[str, object]:
    info = getattr(nvml, structure)()
    if structure.endswith("Info_t"):
        nvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
    else:
        nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    number = int(info.state)
    if number >= len(_FABRIC_STATES):
        raise nvml.NVMLError(nvml.NVML_ERROR_UNKNOWN)
    mask = getattr(info, "healthMask", None)
    summary = getattr(info, "healthSummary", None)
    # nvml.h: NVML_GPU_FABRIC_HEALTH_MASK_DEGRADED_BW is 2 bits wide at bit 0: 1 is true, 2 is false, 0 not supported.
    degraded = None if mask is None else {1: True, 2: False}.get(int(mask) & 3)
    return {
        "state": _FABRIC_STATES[number],
        "status": int(info.status),
        "health": _health(mask, summary),
        "bandwidth_degraded": _UNTOLD if degraded is None else degraded,
        "domain": _domain(info),
    }


def _domain(info: Any) -> str:
    """Return what NCCL compares (src/mnnvl.cc): cluster UUID and clique. A UUID of zeros is no domain."""
    cluster = bytes(info.clusterUuid)
    return f"{cluster.hex()}.{int(info.cliqueId)}" if any(cluster) else ""


def _compute_mode(number: int) -> object:
    if 0 <= number < len(_COMPUTE_MODES):
        return _COMPUTE_MODES[number]
    return {"missing": "error", "detail": f"NVML: compute mode {number} is not known"}


def _health(mask: int | None, summary: int | None) -> object:
    """Return the driver's own summary; of a driver that gives none (structure v2), what its single answers say.

    nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*: routes recovering at bit 2, unhealthy at 4, recovering from access timeouts
    at 6, two bits each (1 is true, 2 false, 0 not supported); four bits at 8: 1 is a right configuration, 2 and more
    name what is wrong with it.
    """
    if summary is not None:
        number = int(summary)
        if number < len(_FABRIC_HEALTH):
            return _FABRIC_HEALTH[number]
        return {"missing": "error", "detail": f"NVML: fabric health {number} is not known"}
    if mask is None:
        return _UNTOLD
    answers, configuration = [mask >> place & 3 for place in (2, 4, 6)], mask >> 8 & 15
    if 1 in answers or configuration > 1:
        return "unhealthy"
    return "healthy" if any(answers) or configuration else _UNTOLD


def _word(words: tuple[str, ...], number: int, otherwise: str) -> str:
    return words[number] if 0 <= number < len(words) else otherwise


def _version(pair: Any) -> str:
    return f"{pair[0]}.{pair[1]}"


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
