"""What NVML tells at a hang, by a stand-in of the driver's library."""

from __future__ import annotations

import json

import pytest

from ncclcheck.cli.watching.gpu_view import GpuView, read_gpus
from tests.facts.nvml import stand_in


def _view(behaviour: str) -> GpuView:
    return read_gpus("node1", stand_in(behaviour))


def test_activity_clocks_errors_and_throttling_of_each_gpu_are_kept() -> None:
    view = _view("nvmlDeviceGetUtilizationRates=100 nvmlDeviceGetCount=2")
    gpus = json.loads(view.files["gpus.json"])
    assert [gpu["index"] for gpu in gpus] == [0, 1]
    state = gpus[0]["state"]
    assert (state["busy_percent"], state["sm_clock_mhz"], state["ecc_uncorrected_volatile"]) == (100, 345, 0)
    assert state["slowdowns"] == []
    assert view.remarks == ()


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("nvmlDeviceGetHandleByIndex:1=error:15", "GPU 1 of node1 does not answer NVML: NVML: GPU is lost"),
        ("nvmlDeviceGetTotalEccErrors:0=3", "GPU 0 of node1 counted 3 uncorrectable memory errors"),
        (
            "reasons:1=64",
            "GPU 1 of node1 is throttled: hardware thermal slowdown",
        ),
        (
            "nvmlDeviceGetCount=4 nvmlDeviceGetUtilizationRates=100 nvmlDeviceGetUtilizationRates:2=0",
            "of the GPUs of node1, 2 idle while 0, 1, 3 are busy",
        ),
    ],
)
def test_a_gpu_that_is_to_blame_is_said(behaviour: str, said: str) -> None:
    (remark,) = _view(behaviour).remarks
    assert remark.startswith(said)


@pytest.mark.slow
def test_a_driver_that_hangs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncclcheck.cli.watching.gpu_view.WATCH_NVML_S", 2.0)
    (remark,) = _view("nvmlInit=hang").remarks
    assert remark.startswith("the GPU driver of node1 does not answer: NVML: nvmlInit")


def test_without_a_driver_nothing_is_kept_or_said() -> None:
    assert read_gpus("node1", {"LD_LIBRARY_PATH": "", "PATH": ""}) == GpuView()
