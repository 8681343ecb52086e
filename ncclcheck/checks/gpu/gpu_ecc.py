"""NC404 gpu-ecc."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.gpus import by_text, closing, listed_gpus, values
from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.snapshot import Snapshot

_RESET = Fix(
    "stop the GPU's processes and reset it, or reboot the node; leave the node out of the job until then",
    ("nvidia-smi -q -d ECC,ROW_REMAPPER", "nvidia-smi --gpu-reset -i INDEX"),
    risk="a reset ends everything that runs on the GPU",
)
_REPLACE = Fix("leave the node out of the job and have the GPU replaced", ("nvidia-smi -q -d ROW_REMAPPER",))


class _Question(Struct, frozen=True):
    """A value of a GPU's state that must be zero or false."""

    field: str
    severity: Severity
    what: str
    fix: Fix


_QUESTIONS = (
    _Question(
        "ecc_uncorrected_volatile", "error", "uncorrectable memory errors since the driver was loaded", _RESET
    ),
    _Question("remap_failed", "error", "memory rows that could not be remapped", _REPLACE),
    _Question("remap_pending", "warning", "memory rows that wait for a reset to be remapped", _RESET),
)


@check(
    "NC404",
    "gpu-ecc",
    "GPU memory has no uncorrected errors",
    alike=("gpus", "pci", "torch_gpus"),
    by_node=True,
)
def gpu_ecc(snapshot: Snapshot) -> Iterator[Answer]:
    """No GPU has uncorrectable memory errors since the driver was loaded, or rows that wait for or failed remapping.

    Older errors (aggregate) that were remapped since do not count. GPUs without ECC are not judged.

    ## Why it matters
    An uncorrectable error ends the process that meets it, hours into the job. Memory whose bad rows could not be
    remapped fails again.

    ## How to fix
    Reset the GPU or reboot: pending rows are remapped then. Have the GPU replaced where remapping failed.

    ## Source
    nvmlDeviceGetTotalEccErrors (uncorrected, volatile), nvmlDeviceGetRemappedRows; NVIDIA GPU Memory Error Management
    (row remapping: pending needs a reset, failure a replacement).
    """
    gpus = listed_gpus(snapshot)
    judged = False
    for question in _QUESTIONS:
        known, unknown = values(gpus, question.field)
        yield from unknown
        judged = judged or bool(known)
        bad = [
            (on.host, on.label if value is True else f"{on.label}: {value}") for on, value in known if value
        ]
        for text, hosts in by_text(bad):
            yield Finding(
                question.severity,
                f"{named(hosts)} {verb(hosts, 'has', 'have')} {question.what}: {text}: the job can "
                "fail at any time",
                hosts,
                (Evidence(hosts, question.what, text, "none", "NVML"),),
                (question.fix,),
            )
    yield from closing(snapshot, judged, "reports its memory errors")
