"""What is asked about GPUs, and in which order, on a machine whose NVML is a stand-in and whose torch has no CUDA."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ncclcheck.facts.gpu.gpu_facts import GPUS, read_gpu_facts
from ncclcheck.model.fact import Missing
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
    if shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has an NVIDIA driver")
    facts = read_gpu_facts({}, 20.0, 30.0)
    for section in (facts.gpus, facts.gpu_driver, facts.gpu_work, facts.torch_gpus):
        assert isinstance(section, Missing)
        assert section.missing == "absent"


def test_a_whole_that_is_late_is_late_in_each_part() -> None:
    late = Missing("timeout", "late")
    assert GPUS.by_name(late) == dict.fromkeys(
        ["gpus", "gpu_driver", "gpu_log", "gpu_work", "torch_gpus"], late
    )
