"""What is said of a GPU whose links made errors while the benchmark ran, when those of most other GPUs made none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from statistics import median

from msgspec import Struct

from ncclcheck.checks.bench._gpus import nvml_evidence
from ncclcheck.model.bench import GpuHealth, GpuSpeed
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Finding, Fix

# Links send a damaged packet again, and a few in a run are no fault. Ours: there is no published limit for a run.
FEWEST = 10


class _Counter(Struct, frozen=True):
    name: str
    value: Callable[[GpuHealth], Fact[int]]
    advice: str
    command: str


_COUNTERS = (
    _Counter(
        "NVLink errors",
        lambda health: health.nvlink_errors,
        "see which NVLink counts the errors; reseat the GPU or its baseboard, or have it replaced",
        "nvidia-smi nvlink -e",
    ),
    _Counter(
        "PCIe replays",
        lambda health: health.pcie_replays,
        "reseat the card, its riser or cable, and look for AER messages of its slot in the kernel log",
        "nvidia-smi -q -d PCIE; dmesg | grep -i aer",
    ),
)


def link_error_findings(gpus: Sequence[GpuSpeed], named: AbstractSet[int]) -> Iterator[Finding]:
    """Yield a finding for each GPU whose counters grew alone; not for ranks in `named`, where they are evidence."""
    by_place = {(gpu.host, gpu.health.pci or str(gpu.rank)): gpu for gpu in gpus}
    several = list(by_place.values())  # ranks may share a GPU
    grown = {counter.name: _grown(several, counter) for counter in _COUNTERS}
    for gpu in several:
        counters = [counter for counter in _COUNTERS if gpu.rank in grown[counter.name]]
        shares = {rank.rank for rank in gpus if (rank.host, rank.health.pci) == (gpu.host, gpu.health.pci)}
        if counters and named.isdisjoint(shares):
            yield _finding(gpu, counters)


def _grown(gpus: Sequence[GpuSpeed], counter: _Counter) -> frozenset[int]:
    """Return the ranks whose counter grew, where that of most other GPUs did not."""
    values = {gpu.rank: value for gpu in gpus if not isinstance(value := counter.value(gpu.health), Missing)}
    return frozenset(
        rank
        for rank, value in values.items()
        if value >= FEWEST
        and (others := [count for owner, count in values.items() if owner != rank])
        and value >= FEWEST * max(1.0, median(others))
    )


def _finding(gpu: GpuSpeed, counters: Sequence[_Counter]) -> Finding:
    counts = " and ".join(f"{counter.value(gpu.health)} {counter.name}" for counter in counters)
    name = f"its GPU {gpu.health.pci}".rstrip()
    option = f" -i {gpu.health.pci}" if gpu.health.pci else ""
    return Finding(
        "warning",
        f"rank {gpu.rank} on {gpu.host}: the links of {name} made errors during the benchmark, and those of most other "
        f"GPUs did not: {counts}; each packet was sent again, which delays the others as it becomes more",
        (gpu.host,),
        tuple(nvml_evidence(gpu.host, gpu.health)),
        tuple(
            Fix(counter.advice, (counter.command.replace("nvidia-smi", f"nvidia-smi{option}", 1),))
            if "nvlink" not in counter.command
            else Fix(counter.advice, (counter.command + option,))
            for counter in counters
        ),
    )
