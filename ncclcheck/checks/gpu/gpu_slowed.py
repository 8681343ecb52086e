"""NC409 gpu-slowed."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import by_text, closing, listed_gpus, values
from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.snapshot import Snapshot

# What slows a GPU down though nobody uses it: too hot, too little power, or the board asks for it. A power cap and
# clocks that an administrator has set are as they were meant to be, and only worth knowing.
_FAULTS = frozenset(
    {"hardware slowdown", "hardware thermal slowdown", "hardware power brake", "software thermal slowdown"}
)
_FIX = Fix(
    "check temperature, fans and power supplies of the node; `nvidia-smi -rac` resets application clocks",
    ("nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",),
)


@check(
    "NC409",
    "gpu-slowed",
    "No GPU is throttled by heat or power",
    alike=("gpus", "pci", "torch_gpus"),
    by_node=True,
)
def gpu_slowed(snapshot: Snapshot) -> Iterator[Answer]:
    """During the run no GPU is throttled because of its temperature, its power supply or its board.

    The check looks once, before the job, and does not see heat under load. It reads clocks and never sets them.

    ## Why it matters
    A GPU at a fraction of its clock makes every rank wait in every collective.

    ## How to fix
    Check the cooling and the power supplies of the node. Leave it out of the job until it is repaired.

    ## Source
    nvmlDeviceGetCurrentClocksEventReasons; the reasons are those of nvml.h.
    """
    known, unknown = values(listed_gpus(snapshot), "slowdowns")
    yield from unknown
    found: dict[Severity, list[tuple[str, str]]] = {}
    for on, reasons in known:
        if reasons:
            severity: Severity = "warning" if _FAULTS.intersection(reasons) else "info"
            found.setdefault(severity, []).append((on.host, f"{on.label}: {', '.join(reasons)}"))
    for severity, members in found.items():
        for text, hosts in by_text(members):
            yield Finding(
                severity,
                f"{named(hosts)} {verb(hosts, 'has', 'have')} throttled GPUs: {text}: all ranks wait for them",
                hosts,
                (Evidence(hosts, "clock event reasons", text, "none, or idle", "NVML"),),
                (_FIX,),
            )
    yield from closing(snapshot, bool(known), "reports its clock event reasons")
