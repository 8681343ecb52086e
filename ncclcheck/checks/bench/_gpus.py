"""What is said of a GPU that is slower than the others, with what NVML saw of it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.measure.blame_gpus import SlowGpu
from ncclcheck.model.bench import GpuHealth
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix

_TOGETHER = "the same work on all GPUs at the same time, after the collectives"
_NVML = "NVML, during the benchmark"
_FIXES = {
    "throttled": (
        "find out what limits the clock of this GPU: power, temperature, or a clock that was set",
        "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK",
    ),
    "slow memory": (
        "look for memory errors and remapped rows of this GPU, and for other processes that use it",
        "nvidia-smi -q -d ECC,ROW_REMAPPER,PIDS",
    ),
    "slow PCIe": (
        "compare the PCIe link of this GPU, and the cores and memory that the rank is bound to, with another one's",
        "nvidia-smi -q -d PCIE; nvidia-smi topo -m",
    ),
}


def gpu_findings(slow: Sequence[SlowGpu]) -> Iterator[Finding]:
    """Yield one finding for each rank whose GPU is slow."""
    for rank in dict.fromkeys(gpu.rank for gpu in slow):
        yield _finding([gpu for gpu in slow if gpu.rank == rank])


def _finding(parts: Sequence[SlowGpu]) -> Finding:
    first = parts[0]
    name = f"its GPU {first.health.pci}".rstrip()
    does = "; ".join(_measured_part(part) for part in parts)
    return Finding(
        "warning",
        f"rank {first.rank} on {first.host} delays the others: {name} is slow: {does}{_reasons(parts)}",
        (first.host,),
        (*(_evidence(part) for part in parts), *nvml_evidence(first.host, first.health)),
        tuple(Fix(_FIXES[part.part][0], (_command(part),)) for part in parts),
    )


def _measured_part(slow: SlowGpu) -> str:
    value, usual = (f"{number:.4g} {slow.unit}" for number in (slow.value, slow.usual))
    return f"{slow.part} ({slow.measured}: {value}, the others {usual})"


def _reasons(parts: Sequence[SlowGpu]) -> str:
    """Return why NVML says that its clock is low, where it is."""
    slowdowns = parts[0].health.slowdowns
    if not any(part.part == "throttled" for part in parts) or isinstance(slowdowns, Missing):
        return ""
    return f"; NVML's reason: {', '.join(slowdowns)}" if slowdowns else "; NVML gives no reason"


def _command(slow: SlowGpu) -> str:
    """Return the command for this GPU; nvidia-smi takes its PCI address as a number."""
    command = _FIXES[slow.part][1]
    pci = slow.health.pci
    return command.replace("nvidia-smi -q", f"nvidia-smi -i {pci} -q") if pci else command


def _evidence(slow: SlowGpu) -> Evidence:
    value, usual = (f"{number:.4g} {slow.unit}" for number in (slow.value, slow.usual))
    return Evidence(
        (slow.host,),
        f"{slow.measured} of rank {slow.rank}",
        value,
        f"{usual} (median of the others)",
        _TOGETHER,
    )


def nvml_evidence(host: str, health: GpuHealth) -> Iterator[Evidence]:
    """Yield what grew, or held, while the benchmark ran; what NVML does not tell is left out."""
    if not isinstance(health.slowdowns, Missing) and health.slowdowns:
        yield Evidence((host,), "clock event reasons", ", ".join(health.slowdowns), "none", _NVML)
    counters: tuple[tuple[str, Fact[int]], ...] = (
        ("new NVLink errors", health.nvlink_errors),
        ("new PCIe replays", health.pcie_replays),
    )
    for name, count in counters:
        if not isinstance(count, Missing) and count:
            yield Evidence((host,), name, str(count), "0", _NVML)
