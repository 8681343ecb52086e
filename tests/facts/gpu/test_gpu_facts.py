"""What is asked about GPUs, and in which order, on a machine whose NVML is a stand-in and whose torch has no CUDA."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ncclcheck.facts.gpu import gpu_facts
from ncclcheck.facts.gpu.gpu_facts import GPUS, read_gpu_facts, shown_gpus
from ncclcheck.facts.gpu.nvml_gpus import Nvml
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuWork, TorchGpus
from tests.fact_builders import some
from tests.facts.nvml import stand_in


def test_every_section_is_filled() -> None:
    facts = read_gpu_facts(stand_in(), 20.0, 30.0)
    assert len(some(facts.gpus)) == 2
    assert some(facts.gpu_driver).cuda == "12.8"
    for section in (
        facts.gpu_work,
        facts.torch_gpus,
    ):  # the torch of the tests is built without CUDA, or is not there
        assert isinstance(section, Missing)
        assert section.missing in ("unsupported", "absent")


@pytest.mark.slow
def test_nothing_is_tried_on_a_driver_that_hangs_or_has_no_gpu() -> None:
    hung = read_gpu_facts(stand_in("nvmlDeviceGetEccMode=hang"), 2.0, 4.0)
    assert isinstance(hung.gpu_work, Missing)
    assert "nvmlDeviceGetEccMode of GPU 0" in hung.gpu_work.detail
    empty = read_gpu_facts(stand_in("nvmlDeviceGetCount=0"), 20.0, 30.0)
    assert empty.gpu_work == Missing("absent", "the driver lists no GPU")


def test_no_driver_is_absent_in_every_section_but_the_log() -> None:
    if (
        shutil.which("nvidia-smi")
        or shown_gpus(Path("/dev"), Path("/"))
        or Path("/proc/driver/nvidia").exists()
    ):
        pytest.skip("this machine has an NVIDIA driver")
    facts = read_gpu_facts({}, 20.0, 30.0)
    for section in (facts.gpus, facts.gpu_driver, facts.gpu_work, facts.torch_gpus):
        assert isinstance(section, Missing)
        assert section.missing == "absent"


def test_without_nvml_torch_is_asked_where_the_kernel_shows_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that was given CUDA's library alone (NVIDIA_DRIVER_CAPABILITIES=compute)."""
    absent = Missing("absent", "libnvidia-ml.so.1 is not there")
    asked: list[object] = []

    def read_torch(*_: object) -> TorchGpus:
        asked.append("torch")
        return TorchGpus(2, ("sm_90",))

    def read_work(most: int, *_: object) -> tuple[GpuWork, ...]:
        asked.append(most)
        return tuple(GpuWork(ordinal, "ok", absent, 1.0) for ordinal in range(2))

    monkeypatch.setattr(gpu_facts, "read_nvml", lambda *_: Nvml(absent, absent))
    monkeypatch.setattr(gpu_facts, "read_torch_gpus", read_torch)
    monkeypatch.setattr(gpu_facts, "read_gpu_work", read_work)
    monkeypatch.setattr(gpu_facts, "shown_gpus", lambda *_: 8)
    facts = read_gpu_facts({}, 5.0, 5.0)
    assert facts.gpus == absent
    assert some(facts.torch_gpus).count == 2
    assert [work.outcome for work in some(facts.gpu_work)] == ["ok", "ok"]
    assert set(asked) == {"torch", 8}
    asked.clear()
    monkeypatch.setattr(gpu_facts, "shown_gpus", lambda *_: 0)
    none = read_gpu_facts({}, 5.0, 5.0)
    assert (asked, isinstance(none.torch_gpus, Missing)) == ([], True)


def test_the_kernel_shows_gpus_by_device_files_or_on_the_bus(tmp_path: Path) -> None:
    devices, root = tmp_path / "dev", tmp_path / "root"
    devices.mkdir()
    root.mkdir()
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-caps"):
        (devices / name).touch()
    assert shown_gpus(devices, root) == 0
    for number in range(3):
        (devices / f"nvidia{number}").touch()
    assert shown_gpus(devices, root) == 3
    device = root / "sys/bus/pci/devices/0000:1b:00.0"
    device.mkdir(parents=True)
    (device / "class").write_text("0x030200\n")
    (device / "vendor").write_text("0x10de\n")
    assert shown_gpus(tmp_path / "none", root) == 1


def test_a_whole_that_is_late_is_late_in_each_part() -> None:
    late = Missing("timeout", "late")
    assert GPUS.by_name(late) == dict.fromkeys(
        ["gpus", "gpu_driver", "gpu_log", "gpu_work", "torch_gpus"], late
    )
