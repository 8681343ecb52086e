"""NC402 gpu-unusable."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import by_text, closing, listed_gpus, no_driver, values
from ncclcheck.checks.hosts import named
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.gpu import OPENING_STAGE, GpuDriver
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.gpus.job_gpus import gpus_without_nvml, sees_none

FABRIC_WORDS = ("system not yet initialized", "system not initialized")  # cudaErrorSystemNotReady, 802
_LOADING = "nvmlInit"
_LOOK = Fix(
    "read the driver's log, leave the node out of the job, and reset the GPU or reboot the node",
    ("nvidia-smi", "dmesg | grep -i -e nvrm -e xid"),
)
_NO_NVML = Fix(
    "install the driver; in a container add `utility` to NVIDIA_DRIVER_CAPABILITIES, which brings libnvidia-ml.so.1",
    ("NVIDIA_DRIVER_CAPABILITIES=compute,utility", "ldconfig -p | grep libnvidia-ml"),
)
# How facts/gpus begins what NVML or its library answered, and what it names where the Python package failed instead.
_OF_DRIVER, _OF_PACKAGE = "NVML: ", "nvidia-ml-py"


@check(
    "NC402",
    "gpu-unusable",
    "Every GPU answers and computes correctly",
    alike=("gpu_driver", "gpu_work", "gpus", "pci", "torch_gpus"),
    by_node=True,
)
def gpu_unusable(snapshot: Snapshot) -> Iterator[Answer]:
    """The driver answers within 5 s, no GPU is lost or needs a reset, and every GPU multiplies matrices correctly.

    The check also finds a driver whose library is damaged, crashes, or does not list the GPUs: no CUDA program
    starts. It also finds GPUs without libnvidia-ml.so.1, as in a container with NVIDIA_DRIVER_CAPABILITIES=compute:
    torch may use them, and NCCL does not start.

    The test multiplies integer matrices of 512 rows, whose exact product is known. It runs in a separate process
    for each GPU that torch sees, and only where torch has CUDA.

    ## Why it matters
    A job that meets such a GPU hangs in its first CUDA call, ends with an error of one rank only, or computes wrong
    numbers.

    ## How to fix
    Read `nvidia-smi` and the kernel log; reset the GPU or reboot the node. If the driver is slow because every
    program loads it anew, turn on persistence mode (`nvidia-smi -pm 1`).

    ## Source
    NVML (a call that does not return, NVML_ERROR_GPU_IS_LOST, the recovery action of nvml.h
    nvmlDeviceGpuRecoveryAction_t); the work of this run; NCCL src/misc/nvmlwrap.cc (ncclNvmlEnsureInitialized, 2.18 to
    2.30.7). The 5 s are ours.
    """
    for node in snapshot.nodes:
        yield from _driver(node)
    gpus = listed_gpus(snapshot)
    lost = [(gpu.host, f"{gpu.label}: {why}") for gpu in gpus if (why := _lost(gpu.gpu.name))]
    for text, hosts in by_text(lost):
        yield _finding(
            f"{named(hosts)}: the driver lost GPUs: {text}", hosts, text, "every GPU answers", "NVML"
        )
    actions, unknown = values(gpus, "recovery_action")
    yield from unknown
    waiting = [(on.host, f"{on.label}: {action}") for on, action in actions if action != "none"]
    for text, hosts in by_text(waiting):
        summary = f"{named(hosts)}: the driver reports that GPUs need recovery: {text}"
        yield _finding(summary, hosts, text, "none", "NVML, recovery action")
    yield from _work(snapshot)
    yield from closing(snapshot, bool(gpus) or bool(snapshot.nodes and not no_driver(snapshot)), "is listed")


def _lost(name: Fact[str]) -> str:
    """Why the driver cannot even name the GPU; empty where it can, or was not asked any more."""
    return name.detail if isinstance(name, Missing) and name.missing == "error" else ""


def _driver(node: Node) -> Iterator[Answer]:
    """A driver that hangs, refuses, or is not there although the bus has GPUs."""
    driver, gpus = node.facts.gpu_driver, node.facts.gpus
    hosts = (node.host,)
    if isinstance(driver, GpuDriver) and driver.stuck_call:
        text = f"{driver.stuck_call}: {driver.stuck_why}"
        summary = (
            f"the NVIDIA driver of {node.host} did not answer {driver.stuck_call}: a job would hang there too"
        )
        if driver.stuck_call == _LOADING:
            summary += ", unless the driver was only loading, which is slow with persistence mode off"
        yield _finding(summary, hosts, text, "an answer within 5 s", "NVML")
    elif isinstance(gpus, Missing) and _is_refused(gpus):
        summary = f"the NVIDIA driver of {node.host} does not work: {gpus.detail}"
        yield _finding(summary, hosts, gpus.detail, "a list of GPUs", "NVML")
    elif count := gpus_without_nvml(node.facts):
        yield _without_library(node, count)
    elif isinstance(driver, Missing) and not isinstance(gpus, Missing):
        yield NotKnown(f"gpu_driver: {driver}", hosts)


def _without_library(node: Node, count: int) -> Finding:
    """Return what follows for GPUs of a node without NVML's library: NCCL opens it at its start (misc/nvmlwrap.cc)."""
    torch, hosts = node.facts.torch_gpus, (node.host,)
    has = f"{node.host} has {count} NVIDIA {'GPU' if count == 1 else 'GPUs'} and no libnvidia-ml.so.1"
    if sees_none(node.facts):
        summary = f"{has}, and torch sees none: programs cannot use them"
    elif isinstance(torch, Missing) or isinstance(torch.count, Missing):
        summary = f"{has}: NCCL cannot start on them; how many torch sees is not known"
    else:
        summary = f"{has}: torch sees {torch.count}, and NCCL cannot start on them"
    seen = Evidence(
        hosts, "NVML", str(node.facts.gpus), "libnvidia-ml.so.1", "NVML; /sys/bus/pci; torch.cuda"
    )
    return Finding("error", summary, hosts, (seen,), (_NO_NVML,))


def _is_refused(gpus: Missing) -> bool:
    """Did the driver's own library fail, so that every CUDA program fails there too?"""
    return gpus.missing == "error" and gpus.detail.startswith(_OF_DRIVER) and _OF_PACKAGE not in gpus.detail


def _work(snapshot: Snapshot) -> Iterator[Answer]:
    wrong: list[tuple[str, str]] = []
    slow: list[tuple[str, str]] = []
    for node in snapshot.nodes:
        work = node.facts.gpu_work
        if isinstance(work, Missing):
            if node.host not in no_driver(snapshot) or gpus_without_nvml(node.facts):
                yield NotKnown(f"no GPU ran the test: {work}", (node.host,))
            continue
        for gpu_work in work:
            if gpu_work.outcome == "ok" or any(words in gpu_work.detail for words in FABRIC_WORDS):
                continue
            detail = f" ({gpu_work.detail})" if gpu_work.detail else ""
            if (
                gpu_work.outcome == "hung"
                and gpu_work.detail.startswith(OPENING_STAGE)
                and _may_open_slowly(node)
            ):
                slow.append((node.host, f"CUDA device {gpu_work.ordinal}{detail}"))
            else:
                wrong.append((node.host, f"CUDA device {gpu_work.ordinal} {gpu_work.outcome}{detail}"))
    for text, hosts in by_text(wrong):
        summary = f"{named(hosts)}: a small matrix multiplication failed: {text}"
        yield _finding(summary, hosts, text, "the exact product", "work of this run on each GPU")

    for text, hosts in by_text(slow):
        summary = (
            f"{named(hosts)}: GPUs did not start in time: {text}: persistence mode is off or not known, or cores are "
            "few, so the first program waits until they start, or they hang; run again to find out which"
        )
        yield _finding(summary, hosts, text, "the exact product", "work of this run on each GPU", "warning")


def _may_open_slowly(node: Node) -> bool:
    """Return True if a GPU may take long to open without a fault: nobody keeps it loaded, or cores are few."""
    gpus, limits = node.facts.gpus, node.facts.limits
    if isinstance(gpus, Missing):
        return False
    cpus = limits if isinstance(limits, Missing) else limits.cpus
    has_few_cores = isinstance(cpus, int) and cpus < len(gpus)
    return has_few_cores or any(gpu.state.persistence is not True for gpu in gpus)


def _finding(
    summary: str,
    hosts: tuple[str, ...],
    observed: str,
    expected: str,
    source: str,
    severity: Severity = "error",
) -> Finding:
    return Finding(severity, summary, hosts, (Evidence(hosts, "GPU", observed, expected, source),), (_LOOK,))
