"""All that is asked about the GPUs: NVML and the kernel's log first, then torch, and a piece of work on each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, start
from ncclcheck.facts.gpu.gpu_log import read_gpu_log
from ncclcheck.facts.gpu.gpu_work import read_gpu_work, read_torch_gpus
from ncclcheck.facts.gpu.nvml_gpus import Nvml, read_nvml
from ncclcheck.facts.pci.pci import nvidia_gpus, read_pci
from ncclcheck.facts.section import Section
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import NOT_IN_A_TREE, NOT_READ, Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.gpu import GpuDriver, GpuLog, GpuWork, TorchGpus

_IMEX_CHANNELS = Path("/dev/nvidia-caps-imex-channels")


class GpuFacts(Struct, frozen=True):
    """The sections of NodeFacts that concern GPUs."""

    gpus: Fact[tuple[Gpu, ...]]
    gpu_driver: Fact[GpuDriver] = NOT_READ
    gpu_log: Fact[GpuLog] = NOT_READ
    gpu_work: Fact[tuple[GpuWork, ...]] = NOT_READ
    torch_gpus: Fact[TorchGpus] = NOT_READ


def read_gpu_facts(environ: Mapping[str, str], nvml_s: float, deadline_s: float) -> GpuFacts:
    """Return what is known after `deadline_s`, NVML after `nvml_s`.

    Work begins when NVML is done, so that no process of ours is among those it lists. Torch is not loaded where NVML
    finds no GPU, nor where a call into the driver hung: it would hang there too. Where NVML's library is not there,
    as in a container that was given CUDA's alone, torch is asked if the kernel shows GPUs.
    """
    end = time.monotonic() + deadline_s
    log = start(read_gpu_log, min(timeouts.GPU_LOG_S, deadline_s))
    nvml = _with_channels(read_nvml(environ, nvml_s), _IMEX_CHANNELS)
    most = _most(nvml)
    why_not = _no_work(nvml, most)
    left_s = end - time.monotonic()
    if why_not is not None:
        return GpuFacts(nvml.gpus, nvml.driver, log.result(left_s), why_not, why_not)
    torch = start(read_torch_gpus, environ, left_s)
    work = read_gpu_work(most, environ, left_s)
    return GpuFacts(
        nvml.gpus,
        nvml.driver,
        log.result(end - time.monotonic()),
        work,
        torch.result(end - time.monotonic()),
    )


def _with_channels(nvml: Nvml, folder: Path) -> Nvml:
    """Return the same with the IMEX channels: device files, by which memory is shared between nodes (NVIDIA IMEX)."""
    if isinstance(nvml.driver, Missing):
        return nvml
    found: Fact[tuple[int, ...]]
    try:
        numbers = (path.name.removeprefix("channel") for path in folder.iterdir())
        found = tuple(sorted(int(number) for number in numbers if number.isascii() and number.isdigit()))
    except FileNotFoundError:
        found = ()
    except OSError as error:
        found = missing_for(error, str(folder))
    return replace(nvml, driver=replace(nvml.driver, imex_channels=found))


def shown_gpus(devices: Path, root: Path) -> int:
    """Return how many GPUs the kernel shows, without NVIDIA's libraries: device files /dev/nvidiaN, or the PCI bus."""
    try:
        files = sum(path.name.removeprefix("nvidia").isdecimal() for path in devices.glob("nvidia[0-9]*"))
    except OSError:
        files = 0
    pci = read_pci(root)
    return max(files, 0 if isinstance(pci, Missing) else len(nvidia_gpus(pci)))


def _most(nvml: Nvml) -> int:
    """Return how many GPUs there may be at most."""
    if not isinstance(nvml.gpus, Missing):
        return len(nvml.gpus)
    return shown_gpus(Path("/dev"), Path("/")) if nvml.gpus.missing == "absent" else 0


def _no_work(nvml: Nvml, most: int) -> Missing | None:
    if isinstance(nvml.gpus, Missing) and not most:
        return Missing(nvml.gpus.missing, f"not tried: {nvml.gpus.detail}")
    if not nvml.gpus:
        return Missing("absent", "the driver lists no GPU")
    if not isinstance(nvml.driver, Missing) and nvml.driver.stuck_call:
        return Missing("error", f"not tried, since {nvml.driver.stuck_call} got stuck")
    return None


def _read_tree(here: Folder) -> GpuFacts:
    """Return NVIDIA's display and 3D controllers in the order of their addresses, which is NVML's."""
    pci = read_pci(here.root)
    if isinstance(pci, Missing):  # an unread bus does not prove that there is no GPU
        return GpuFacts(Missing("error", f"the PCI bus, by which GPUs are listed: {pci.detail}"))
    return GpuFacts(
        tuple(
            Gpu(index, NOT_IN_A_TREE, NOT_IN_A_TREE, device.address, NOT_IN_A_TREE)
            for index, device in enumerate(nvidia_gpus(pci))
        )
    )


GPUS = Section(
    {
        "gpus": "NVML, in a child process; of a recorded tree the PCI bus",
        "gpu_driver": "NVML: nvmlInit, nvmlSystemGetDriverVersion, nvmlSystemGetCudaDriverVersion_v2",
        "gpu_log": "/dev/kmsg, else journalctl",
        "gpu_work": "a multiplication by torch on each GPU, in a child process each",
        "torch_gpus": "torch.cuda, in a child process",
    },
    read=lambda request: read_gpu_facts(
        request.environment, min(timeouts.NVML_S, request.parts_s), request.parts_s
    ),
    read_tree=_read_tree,
)
