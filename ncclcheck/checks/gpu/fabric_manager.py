"""NC407 fabric-manager."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpu.gpu_unusable import FABRIC_WORDS
from ncclcheck.checks.gpus import GpuOn, by_text, closing, listed_gpus, unknown_values, values
from ncclcheck.checks.hosts import named
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.gpu import Fabric
from ncclcheck.model.snapshot import Snapshot

_FIX = Fix(
    "start the fabric manager in the driver's version, or read its log; with multi-node NVLink also check IMEX",
    (
        "systemctl status nvidia-fabricmanager",
        "journalctl -u nvidia-fabricmanager",
        "nvidia-smi -q | grep -A4 Fabric",
    ),
)


@check(
    "NC407",
    "fabric-manager",
    "Every GPU has joined its NVLink fabric",
    alike=("gpu_work", "gpus", "pci", "torch_gpus"),
    by_node=True,
)
def fabric_manager(snapshot: Snapshot) -> Iterator[Answer]:
    """Where NVSwitches connect GPUs, every GPU reports that its fabric registration is completed and healthy.

    The check asks the GPUs, not the service, which may run outside of a container or a virtual machine.

    ## Why it matters
    Until the fabric manager has set up the switches, every CUDA program ends with "system not yet initialized" (802).
    A GPU that joined a degraded fabric is slow, and NCCL may choose another transport for it than its peers.

    ## How to fix
    Start `nvidia-fabricmanager` in exactly the version of the driver. Its log says why it did not finish.

    ## Source
    nvmlDeviceGetGpuFabricInfoV (state, status, health); CUDA: cudaErrorSystemNotReady.
    """
    fabrics, unknown = values(listed_gpus(snapshot), "fabric")
    yield from unknown
    for part in ("health", "bandwidth_degraded"):
        yield from unknown_values(
            ((on, getattr(fabric, part)) for on, fabric in _joined(fabrics)), f"fabric {part}"
        )
    working = {
        (node.host, work.uuid)
        for node, works in snapshot.known("gpu_work")
        for work in works
        if work.outcome == "ok"
    }
    found: dict[Severity, list[tuple[str, str]]] = {}
    for on, fabric in fabrics:
        problem = _problem(fabric)
        if problem:
            # A GPU that computed in spite of it may stand alone by intent, as in a virtual machine with one GPU.
            severity: Severity = "warning" if (on.host, on.gpu.uuid) in working else "error"
            severity = "warning" if problem == _SLOW else severity
            found.setdefault(severity, []).append((on.host, f"{on.label}: {problem}"))
    for node, works in snapshot.known("gpu_work"):
        for work in works:
            if any(words in work.detail for words in FABRIC_WORDS):
                found.setdefault("error", []).append(
                    (node.host, f"CUDA device {work.ordinal}: {work.detail}")
                )
    for severity, members in found.items():
        for text, hosts in by_text(members):
            yield Finding(
                severity,
                f"{named(hosts)}: the NVLink fabric reports an unhealthy state: {text}: CUDA fails, "
                "or NCCL is slow",
                hosts,
                (
                    Evidence(
                        hosts, "fabric of the GPUs", text, "completed and healthy", "NVML; work of this run"
                    ),
                ),
                (_FIX,),
            )
    judged = any(fabric.state != "not-supported" for _, fabric in fabrics)
    yield from closing(snapshot, judged, "is known to belong to an NVLink fabric")


_SLOW = "its bandwidth is degraded"


def _joined(fabrics: list[tuple[GpuOn, Fabric]]) -> list[tuple[GpuOn, Fabric]]:
    """The GPUs that belong to a fabric: of others the driver reports no more."""
    return [(on, fabric) for on, fabric in fabrics if fabric.state != "not-supported"]


def _problem(fabric: Fabric) -> str:
    if fabric.state == "not-supported":
        return ""
    if fabric.state != "completed":
        return f"registration is {fabric.state.replace('-', ' ')}"
    if fabric.status:
        return f"registration ended with NVML error {fabric.status}"
    if fabric.health in ("unhealthy", "limited-capacity"):
        return str(fabric.health).replace("-", " ")
    return _SLOW if not isinstance(fabric.bandwidth_degraded, Missing) and fabric.bandwidth_degraded else ""
