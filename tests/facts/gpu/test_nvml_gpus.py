"""GPUs through NVML: a real child, a real loader, and a stand-in for the driver library where there is none."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import asdict

from ncclcheck.facts.gpu.gpu_values import bus_address
from ncclcheck.facts.gpu.nvml_gpus import Nvml, read_nvml
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.gpu import Fabric, GpuDriver, GpuProcess, GpuState, NvLink, PeerAccess
from tests.fact_builders import some
from tests.facts.nvml import stand_in

DOMAIN = f"{'ab' * 16}.7"
PATIENT_S = 20.0
NEW_HEALTH = Missing("error", "NVML: fabric health 9 is not known")
SWITCH = "0000:c2:00.0"
UNTOLD = Missing("unsupported", "this driver does not tell it")


def read(behaviour: str = "", *, old_driver: bool = False) -> Nvml:
    return read_nvml(stand_in(behaviour, old_driver=old_driver), PATIENT_S)


def gpus_of(told: Nvml) -> tuple[Gpu, ...]:
    return some(told.gpus)


def unread_fields(gpu: Gpu) -> dict[str, Missing]:
    values = asdict(gpu.state) | {
        "name": gpu.name,
        "uuid": gpu.uuid,
        "pci": gpu.pci,
        "memory": gpu.memory_bytes,
    }
    return {name: value for name, value in values.items() if isinstance(value, Missing)}


def test_each_gpu_is_listed_whatever_the_job_may_see() -> None:
    gpus = some(read_nvml({**stand_in(), "CUDA_VISIBLE_DEVICES": "1"}, PATIENT_S).gpus)
    first, second = ((gpu.name, gpu.uuid, gpu.pci, gpu.memory_bytes) for gpu in gpus)
    assert first == ("NVIDIA H200", "GPU-1", "0000:1b:00.0", 150_754_820_096)
    assert second == ("NVIDIA H200", "GPU-2", "0000:1c:00.0", 150_754_820_096)


def test_everything_a_healthy_gpu_tells() -> None:
    told = read("nvmlDeviceGetCount=8")
    gpus = gpus_of(told)
    assert len(gpus) == 8
    assert gpus[3].state == GpuState(
        memory_used_bytes=4 << 20,
        processes=(),
        ecc=True,
        ecc_uncorrected_volatile=0,
        ecc_uncorrected_aggregate=0,
        remap_pending=False,
        remap_failed=False,
        recovery_action="none",
        slowdowns=(),
        sm_clock_mhz=345,
        max_sm_clock_mhz=1980,
        power_w=75.5,
        power_limit_w=700.0,
        temperature_c=31,
        busy_percent=0,
        mig=False,
        persistence=True,
        compute_capability="9.0",
        pcie_generation=5,
        pcie_width=16,
        max_pcie_generation=5,
        max_pcie_width=16,
        compute_mode="default",
        nvlinks=tuple(NvLink(link, True, SWITCH) for link in range(18)),
        fabric=Fabric("completed", 0, "healthy", False),
        peers=tuple(PeerAccess(peer, "ok") for peer in range(8) if peer != 3),
    )
    driver = some(told.driver)
    assert (driver.version, driver.cuda, driver.stuck_call) == ("570.86.15", "12.8", "")
    assert isinstance(driver.answered_after_s, float)


def test_an_old_driver_without_the_newer_functions_costs_only_what_it_cannot_tell() -> None:
    first = gpus_of(read(old_driver=True))[0]
    unread = unread_fields(first)
    assert set(unread) == {"fabric", "recovery_action"}
    assert {one.missing for one in unread.values()} == {"unsupported"}
    assert first.state.memory_used_bytes == 700 << 20  # of the older call, which counts what is reserved
    assert first.state.processes == ()


@pytest.mark.parametrize(
    ("behaviour", "field", "value"),
    [
        ("nvmlDeviceGetTotalEccErrors:1.0=3", "ecc_uncorrected_volatile", 3),
        ("nvmlDeviceGetTotalEccErrors:1.1=7", "ecc_uncorrected_aggregate", 7),
        ("nvmlDeviceGetRemappedRows:1.0=1", "remap_pending", True),
        ("nvmlDeviceGetRemappedRows:1.1=1", "remap_failed", True),
        ("recovery:1=2", "recovery_action", "reboot"),
        ("reasons:1=0x48", "slowdowns", ("hardware slowdown", "hardware thermal slowdown")),
        ("nvmlDeviceGetMigMode:1=1", "mig", True),
        ("nvmlDeviceGetPersistenceMode:1=0", "persistence", False),
        ("links:1=0", "nvlinks", ()),
        ("fabric:1.0=2", "fabric", Fabric("in-progress", 0, "healthy", False)),
        ("fabric:1.1=999", "fabric", Fabric("completed", 999, "healthy", False)),
        ("fabric:1.2=1 fabric:1.3=2", "fabric", Fabric("completed", 0, "unhealthy", True)),
        ("fabric:1.5=0xAB fabric:1.6=7", "fabric", Fabric("completed", 0, "healthy", False, DOMAIN)),
        ("nvmlDeviceGetComputeMode:1=3", "compute_mode", "exclusive-process"),
        ("fabric:1.2=0", "fabric", Fabric("completed", 0, "healthy", UNTOLD)),
        ("fabric:1.3=9", "fabric", Fabric("completed", 0, NEW_HEALTH, False)),
        ("fabric:1.2=0x1AA fabric:1.4=2", "fabric", Fabric("completed", 0, "healthy", False)),
        ("fabric:1.2=0x19A fabric:1.4=2", "fabric", Fabric("completed", 0, "unhealthy", False)),
        ("fabric:1.2=0x5AA fabric:1.4=2", "fabric", Fabric("completed", 0, "unhealthy", False)),
        ("fabric:1.2=2 fabric:1.4=2", "fabric", Fabric("completed", 0, UNTOLD, False)),
        ("reasons:1=0x1400", "slowdowns", ("unknown reason 0x1400",)),
        ("nvmlDeviceGetP2PStatus:1.0=4", "peers", (PeerAccess(0, "disabled by registry key"),)),
        ("nvmlDeviceGetCudaComputeCapability:1=103", "compute_capability", "10.3"),
        ("nvmlDeviceGetCurrPcieLinkWidth:1=8", "pcie_width", 8),
        ("nvmlDeviceGetMaxPcieLinkWidth:1=4", "max_pcie_width", 4),
        ("nvmlDeviceGetMaxPcieLinkGeneration:1=6", "max_pcie_generation", 6),
        ("nvmlDeviceGetEccMode:1=error:3", "ecc", Missing("unsupported", "NVML: Not Supported")),
        ("nvmlDeviceGetEccMode:1=error:4", "ecc", Missing("denied", "NVML: Insufficient Permissions")),
        ("nvmlDeviceGetEccMode:1=error:999", "ecc", Missing("error", "NVML: Unknown Error")),
    ],
)  # fmt: skip
def test_one_thing_of_one_gpu_changes_that_and_nothing_else(
    behaviour: str, field: str, value: object
) -> None:
    healthy, changed = gpus_of(read()), gpus_of(read(behaviour))
    assert changed[0] == healthy[0]
    expected = asdict(healthy[1].state) | {field: value}
    assert asdict(changed[1].state) == expected


def test_a_link_that_is_down_is_that_link() -> None:
    links = some(gpus_of(read("nvmlDeviceGetNvLinkState:1.5=0"))[1].state.nvlinks)
    assert [link.link for link in links if link.active is False] == [5]
    assert len(links) == 18
    assert isinstance(links[5].remote, Missing)


def test_what_a_link_leads_to_is_told() -> None:
    links = some(gpus_of(read("remote:1.5=0x1b remote:1.6=error:3"))[1].state.nvlinks)
    assert [link.remote for link in links[4:7]] == [
        SWITCH, "0000:1b:00.0", Missing("unsupported", "NVML: Not Supported"),
    ]  # fmt: skip


def test_a_process_on_a_gpu_is_named_and_told_from_our_own() -> None:
    processes = some(gpus_of(read("processes:0=1"))[0].state.processes)
    name = Path("/proc/1/comm").read_text(encoding="utf-8").strip()
    assert processes == (GpuProcess(1, 4 << 30, name, False),)
    ours = some(gpus_of(read(f"processes:0={os.getpid()}"))[0].state.processes)
    assert ours[0].own


def test_a_gpu_that_fell_off_the_bus_keeps_its_place() -> None:
    gpus = gpus_of(read("nvmlDeviceGetHandleByIndex:1=error:15"))
    assert gpus[0].name == "NVIDIA H200"
    assert gpus[1].index == 1
    lost = Missing("error", "NVML: GPU is lost")
    assert set(unread_fields(gpus[1]).values()) == {lost}
    assert len(unread_fields(gpus[1])) == len(asdict(gpus[1].state)) + 4


@pytest.mark.slow
def test_a_driver_that_hangs_is_called_in_time_with_the_call() -> None:
    began = time.monotonic()
    told = read_nvml(stand_in("nvmlInit=hang"), 2.0)
    assert time.monotonic() - began < 4
    assert told.gpus == Missing("timeout", "NVML: nvmlInit did not answer within 2 s")
    assert some(told.driver).stuck_call == "nvmlInit"


@pytest.mark.slow
def test_a_call_that_hangs_costs_that_alone() -> None:
    told = read_nvml(stand_in("nvmlDeviceGetEccMode:1=hang nvmlDeviceGetNvLinkState:0.3=hang"), 4.0)
    gpus = gpus_of(told)
    late = Missing("timeout", "NVML: nvmlDeviceGetEccMode of GPU 1 did not answer within 4 s")
    assert unread_fields(gpus[1]) == {"ecc": late}
    assert unread_fields(gpus[0]) == {}
    links = some(gpus[0].state.nvlinks)
    silent = [link.link for link in links if isinstance(link.active, Missing)]
    assert (silent, len(links)) == ([3], len(some(gpus[1].state.nvlinks)))
    assert some(told.driver).stuck_call == "nvmlDeviceGetEccMode of GPU 1"
    assert some(told.driver).stuck_why == late.detail


@pytest.mark.slow
def test_a_call_that_is_only_slow_is_waited_for() -> None:
    told = read_nvml(stand_in("nvmlDeviceGetEccMode:1=slow"), PATIENT_S)
    assert [unread_fields(gpu) for gpu in gpus_of(told)] == [{}, {}]
    assert some(told.driver).stuck_call == ""


@pytest.mark.parametrize("content", [b"", b"\x7fELF no library", b"junk" * 999])
def test_a_damaged_driver_library_is_not_the_absence_of_a_driver(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(content)
    told = read_nvml({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, PATIENT_S)
    assert isinstance(told.gpus, Missing)
    assert told.gpus.missing == "error"
    assert str(tmp_path) in told.gpus.detail


def test_a_call_that_crashes_costs_that_alone() -> None:
    told = read("nvmlDeviceGetEccMode:1=crash")
    gpus = gpus_of(told)
    crashed = Missing("error", "NVML: nvmlDeviceGetEccMode crashed")
    assert unread_fields(gpus[1]) == {"ecc": crashed}
    assert unread_fields(gpus[0]) == {}
    assert some(told.driver).stuck_call == "nvmlDeviceGetEccMode of GPU 1"


def test_a_crash_in_the_first_call_leaves_no_list() -> None:
    told = read("nvmlInit=crash")
    assert isinstance(told.gpus, Missing)
    assert told.gpus.missing == "error"
    assert "nvmlInit" in told.gpus.detail


def test_a_library_without_a_loaded_driver_is_an_error_not_absence() -> None:
    told = read("nvmlInit=error:9")
    assert told == Nvml(*[Missing("error", "NVML: Driver Not Loaded")] * 2)


def test_a_driver_that_cannot_count_is_no_list() -> None:
    told = read("nvmlDeviceGetCount=error:999")
    assert told.gpus == Missing("error", "NVML: Unknown Error")
    assert isinstance(some(told.driver), GpuDriver)


def test_a_driver_without_gpus_lists_none() -> None:
    assert read("nvmlDeviceGetCount=0").gpus == ()


def test_no_driver_library_is_absent() -> None:
    if shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has an NVIDIA driver")
    gpus = read_nvml(deadline_s=PATIENT_S).gpus
    assert isinstance(gpus, Missing)
    assert gpus.missing == "absent"
    assert "libnvidia-ml.so.1" in gpus.detail


def test_pci_addresses_are_written_as_the_kernel_does() -> None:
    assert bus_address("00000000:1B:00.0") == "0000:1b:00.0"
    assert bus_address("00010000:01:00.0") == "10000:01:00.0"
