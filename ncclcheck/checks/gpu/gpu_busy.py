"""NC403 gpu-busy."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import GpuOn, by_text, closing, listed_gpus, unknown_values, values
from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.gpu import GpuProcess
from ncclcheck.model.snapshot import Snapshot

_SHARE_IN_USE = 0.05  # of the memory: more than a driver and its services keep for themselves
_SHARE_TAKEN = 0.10  # a job that was sized for the whole GPU no longer fits
_MIB = 1 << 20
# Services of NVIDIA that hold a context for everybody: MPS, DCGM and its exporter.
_SERVICES = ("nvidia-cuda-mps", "nv-hostengine", "dcgm")
_LIST = ("nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv",)


@check(
    "NC403", "gpu-busy", "No other program uses the GPUs", alike=("gpus", "pci", "torch_gpus"), by_node=True
)
def gpu_busy(snapshot: Snapshot) -> Iterator[Answer]:
    """No GPU runs a process from outside this run, and no GPU has memory in use without a visible process.

    NVIDIA's shared services (MPS, DCGM) do not count. In a container the driver reports the PID of a process in
    another container, but not its name.

    ## Why it matters
    A leftover process of an earlier job uses memory and computing time. The new job ends with "CUDA out of memory" on
    that GPU, or every rank waits for the rank that shares its GPU.

    ## How to fix
    End the process if it is yours, or ask for another node. This check kills nothing.

    ## Source
    nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetMemoryInfo. The limits (5 % in use without an owner; an error
    from 10 %) are ours.
    """
    gpus = listed_gpus(snapshot)
    processes, unknown = values(gpus, "processes")
    yield from unknown
    strangers = [(on, stranger) for on, found in processes for stranger in found if _counts(stranger)]
    for severity, processes in _by_severity(strangers).items():
        texts = [(on.host, f"{on.label}: {_named(stranger)}") for on, stranger in processes]
        for text, hosts in by_text(texts):
            yield _finding(severity, f"{named(hosts)}: other programs run on GPUs: {text}", hosts, text)
    used, unknown = values(gpus, "memory_used_bytes")
    yield from unknown
    yield from unknown_values(((on, on.gpu.memory_bytes) for on, _ in used), "the size of the memory")
    owned = {(on.host, on.gpu.index) for on, found in processes if found}
    quiet = [(on, value) for on, value in used if (on.host, on.gpu.index) not in owned]
    full = [
        (on.host, f"{on.label}: {value // _MIB} MiB")
        for on, value in quiet
        if not isinstance(on.gpu.memory_bytes, Missing) and value > _SHARE_IN_USE * on.gpu.memory_bytes
    ]
    for text, hosts in by_text(full):
        summary = (
            f"{named(hosts)} {verb(hosts, 'has', 'have')} GPU memory in use without a visible process: {text}"
        )
        yield _finding("warning", summary, hosts, text)
    yield from closing(snapshot, bool(processes or used), "reports which processes use it")


def _counts(process: GpuProcess) -> bool:
    name = process.name
    return not process.own and (isinstance(name, Missing) or not name.startswith(_SERVICES))


def _named(process: GpuProcess) -> str:
    name = "of another container or user" if isinstance(process.name, Missing) else process.name
    used = "" if isinstance(process.used_bytes, Missing) else f", {process.used_bytes // _MIB} MiB"
    return f"process {process.pid} ({name}{used})"


def _by_severity(
    strangers: list[tuple[GpuOn, GpuProcess]],
) -> dict[Severity, list[tuple[GpuOn, GpuProcess]]]:
    found: dict[Severity, list[tuple[GpuOn, GpuProcess]]] = {}
    for on, process in strangers:
        total, used = on.gpu.memory_bytes, process.used_bytes
        takes_much = isinstance(total, int) and isinstance(used, int) and used > _SHARE_TAKEN * total
        found.setdefault("error" if takes_much else "warning", []).append((on, process))
    return found


def _finding(severity: Severity, summary: str, hosts: tuple[str, ...], text: str) -> Finding:
    return Finding(
        severity,
        f"{summary}: the job runs out of memory there, or waits for the slowest GPU",
        hosts,
        (Evidence(hosts, "use of the GPUs", text, "only this run", "NVML"),),
        (Fix("end the processes of earlier jobs, or use other nodes", _LIST),),
    )
