"""GPUs through NVML: a real child, a real loader, and a stand-in for the driver library where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from ncclcheck.facts.gpus import read_gpus
from ncclcheck.facts.gpus_child import sysfs_address
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu

BuildDriver: TypeAlias = Callable[..., dict[str, str]]

# The part of NVIDIA's nvml.h that is called; GPU 1 answers with what the test defines.
_LIBRARY = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { if (HANGS) for (;;) pause(); return INIT; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "something"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (index == 1 && LOST) return 15;
    *handle = (void *)(unsigned long)(index + 1);
    return 0;
}
int nvmlDeviceGetName(void *gpu, char *name, unsigned length) {
    (void)gpu; snprintf(name, length, "NVIDIA H200"); return 0;
}
int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%lu", (unsigned long)gpu); return 0;
}
int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%lX:00.0", 0x1aul + (unsigned long)gpu);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *gpu, struct memory *memory) {
    if (gpu == (void *)2) return 3; /* not supported: a GPU that shares the host's memory */
    memory->total = 150754820096ull; return 0;
}
"""


@pytest.fixture
def driver(tmp_path: Path) -> BuildDriver:
    """Builds a libnvidia-ml.so.1 and gives the environment in which the loader finds it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a stand-in for libnvidia-ml.so.1")

    def build(**behaviour: int) -> dict[str, str]:
        (tmp_path / "nvml.c").write_text(_LIBRARY)
        settings = {"HANGS": 0, "INIT": 0, "LOST": 0, **behaviour}
        flags = [f"-D{name}={value}" for name, value in settings.items()]
        library = str(tmp_path / "libnvidia-ml.so.1")
        command = [compiler, "-shared", "-fPIC", *flags, "-o", library, str(tmp_path / "nvml.c")]
        subprocess.run(command, check=True, timeout=60)
        return {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}

    return build


def test_each_gpu_is_listed_whatever_the_job_may_see(driver: BuildDriver) -> None:
    gpus = read_gpus({**driver(), "CUDA_VISIBLE_DEVICES": "1"}, 20)
    unsupported = Missing("unsupported", "NVML: Not Supported")
    assert gpus == (
        Gpu(0, "NVIDIA H200", "GPU-1", "0000:1b:00.0", 150_754_820_096),
        Gpu(1, "NVIDIA H200", "GPU-2", "0000:1c:00.0", unsupported),
    )


def test_a_gpu_that_fell_off_the_bus_keeps_its_place(driver: BuildDriver) -> None:
    gpus = read_gpus(driver(LOST=1), 20)
    assert isinstance(gpus, tuple)
    assert gpus[0].name == "NVIDIA H200"
    assert isinstance(gpus[1].name, Missing)
    assert gpus[1].index == 1


def test_a_driver_that_hangs_is_given_up(driver: BuildDriver) -> None:
    gpus = read_gpus(driver(HANGS=1), 1.0)
    assert isinstance(gpus, Missing)
    assert gpus.missing == "timeout"


def test_a_library_without_a_loaded_driver_is_an_error_not_absence(driver: BuildDriver) -> None:
    gpus = read_gpus(driver(INIT=9), 20)
    assert gpus == Missing("error", "NVML: Driver Not Loaded")


def test_no_driver_library_is_absent() -> None:
    if shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has an NVIDIA driver")
    gpus = read_gpus(deadline_s=20)
    assert isinstance(gpus, Missing)
    assert gpus.missing == "absent"
    assert "libnvidia-ml.so.1" in gpus.detail


def test_pci_addresses_are_written_as_the_kernel_does() -> None:
    assert sysfs_address("00000000:1B:00.0") == "0000:1b:00.0"
    assert sysfs_address("00010000:01:00.0") == "10000:01:00.0"
