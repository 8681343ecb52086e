"""NC402 gpu-unusable."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuDriver, GpuWork, TorchGpus
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, node, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some
from tests.gpu_builders import with_all_gpus, with_gpu
from tests.hardware_builders import rdma_cluster

ABSENT = Missing("absent", "libnvidia-ml.so.1 is not there: no NVIDIA driver is installed")
STUCK = "NVML: nvmlInit did not answer within 5 s"


def with_work(host: str, index: int, outcome: str, detail: str = "") -> Snapshot:
    snapshot = cluster(4)
    work = list(some(node(snapshot, host).facts.gpu_work))
    work[index] = GpuWork(index, outcome, f"GPU-{index}", 9.0, detail)  # type: ignore[arg-type]
    return with_facts(snapshot, host, gpu_work=tuple(work))


def test_healthy_gpus_are_silent() -> None:
    assert is_silent("gpu-unusable", cluster(4))


def test_a_driver_that_hangs_at_once_is_called_with_the_call() -> None:
    late = Missing("timeout", STUCK)
    driver = GpuDriver(late, late, late, "nvmlInit", STUCK)
    found = finding(
        "gpu-unusable", with_facts(cluster(4), "node03", gpus=late, gpu_driver=driver, gpu_work=late)
    )
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "did not answer nvmlInit" in found.summary


def test_a_driver_that_hangs_later_is_called_too() -> None:
    driver = GpuDriver("570.86.15", "12.8", 0.1, "nvmlDeviceGetEccMode of GPU 3", "NVML: ... 5 s")
    found = finding("gpu-unusable", with_facts(cluster(4), "node03", gpu_driver=driver))
    assert "nvmlDeviceGetEccMode of GPU 3" in found.summary


@pytest.mark.parametrize(
    "words",
    [
        "Driver Not Loaded",
        "RM has detected an NVML/RM version mismatch",
        "Unknown Error",
        "GPU is lost",
        "nvmlInit crashed",
        "the driver's library cannot be loaded: libnvidia-ml.so.1: file too short",
    ],
)
def test_a_driver_that_refuses_every_answer_is_found(words: str) -> None:
    refusal = Missing("error", f"NVML: {words}")
    for driver in (refusal, GpuDriver("570.86.15", "12.8", 0.1, "", "")):
        found = finding("gpu-unusable", with_facts(cluster(4), "node03", gpus=refusal, gpu_driver=driver))
        assert (found.severity, found.hosts) == ("error", ("node03",))
        assert words in found.summary


def test_a_package_that_fails_is_not_the_drivers_fault() -> None:
    broken = Missing("error", "NVML: the child ended with 1 in nvidia-ml-py: ImportError")
    result = run("gpu-unusable", with_facts(cluster(4), "node03", gpus=broken, gpu_driver=broken))
    assert (result.outcome, result.findings) == ("unknown", ())


def test_a_lost_gpu_is_named() -> None:
    lost = Missing("error", "NVML: GPU is lost")
    found = finding("gpu-unusable", with_gpu(cluster(4), "node02", 5, name=lost))
    assert found.hosts == ("node02",)
    assert "GPU 5 (0000:05:00.0): NVML: GPU is lost" in found.summary


def test_a_gpu_that_waits_for_a_reset_is_named_with_the_action() -> None:
    found = finding("gpu-unusable", with_gpu(cluster(4), "node02", 5, recovery_action="reset"))
    assert "GPU 5 (0000:05:00.0): reset" in found.summary


@pytest.mark.parametrize("outcome", ["wrong-result", "failed", "hung"])
def test_work_that_does_not_succeed_is_found(outcome: str) -> None:
    found = finding("gpu-unusable", with_work("node02", 3, outcome, "why"))
    assert found.hosts == ("node02",)
    assert f"CUDA device 3 {outcome} (why)" in found.summary


def test_a_fabric_that_is_not_ready_is_the_question_of_another_check() -> None:
    snapshot = with_work("node02", 3, "failed", "RuntimeError: CUDA error: system not yet initialized")
    assert is_silent("gpu-unusable", snapshot)


def test_gpus_on_the_bus_without_a_driver_are_found() -> None:
    snapshot = with_facts(rdma_cluster(2), "node02", gpus=ABSENT, gpu_driver=ABSENT, gpu_work=())
    has = "node02 has 8 NVIDIA GPUs and no libnvidia-ml.so.1"
    for torch, said in (
        (TorchGpus(0, ()), f"{has}, and torch sees none: programs cannot use them"),
        (Missing("unsupported", "this torch was built without CUDA"), f"{has}, and torch sees none"),
        (TorchGpus(8, ()), f"{has}: torch sees 8, and NCCL cannot start on them"),
        (Missing("timeout", "late"), f"{has}: NCCL cannot start on them; how many torch sees is not known"),
    ):
        found = finding("gpu-unusable", with_facts(snapshot, "node02", torch_gpus=torch))
        assert (found.severity, found.hosts) == ("error", ("node02",))
        assert found.summary.startswith(said)


def test_gpus_that_only_torch_sees_are_found() -> None:
    snapshot = with_facts(cluster(2), "node02", gpus=ABSENT, gpu_driver=ABSENT, gpu_work=ABSENT)
    assert "torch sees 8, and NCCL cannot start" in finding("gpu-unusable", snapshot).summary
    assert "node02: no GPU ran the test" in run("gpu-unusable", snapshot).reason


def test_a_cluster_without_gpus_is_not_asked() -> None:
    bare = everywhere(cluster(2), gpus=ABSENT, gpu_driver=ABSENT, gpu_work=ABSENT, torch_gpus=ABSENT)
    assert run("gpu-unusable", bare).outcome == "not_applicable"


@pytest.mark.parametrize("section", ["gpus", "gpu_driver", "gpu_work"])
def test_what_was_not_read_is_unknown(section: str) -> None:
    result = run("gpu-unusable", without(cluster(4), "node03", section, GONE))
    assert (result.outcome, "node03" in result.reason) == ("unknown", True)


def test_a_recovery_action_that_was_not_read_is_unknown_and_an_old_driver_is_not_blamed() -> None:
    late = with_gpu(cluster(4), "node02", 5, recovery_action=GONE)
    assert run("gpu-unusable", late).outcome == "unknown"
    old = Missing("unsupported", "old")
    assert is_silent("gpu-unusable", with_all_gpus(cluster(4), recovery_action=old))
    of_one = run("gpu-unusable", with_gpu(cluster(4), "node02", 5, recovery_action=old))
    assert (of_one.outcome, of_one.reason) == (
        "unknown",
        "node02: recovery action of GPU 5: unsupported: old",
    )


def test_a_gpu_that_is_slow_to_wake_up_is_not_called_stuck() -> None:
    hung = tuple(
        GpuWork(index, "hung", Missing("unsupported", "old torch"), 9.0, "open the GPU: no answer for 6 s")
        for index in range(8)
    )
    awake = with_facts(cluster(2), "node02", gpu_work=hung)
    assert finding("gpu-unusable", awake).severity == "error"
    asleep = with_gpu(awake, "node02", 0, persistence=False)
    found = finding("gpu-unusable", asleep)
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "persistence mode is off" in found.summary
    limits = some(node(awake, "node02").facts.limits)
    few_cores = with_facts(awake, "node02", limits=replace(limits, cpus=4))
    assert finding("gpu-unusable", few_cores).severity == "warning"
    unread = with_gpu(awake, "node02", 0, persistence=GONE)
    assert "warning" in {told.severity for told in run("gpu-unusable", unread).findings}
    later = tuple(replace(work, detail="multiply: no answer for 6 s") for work in hung)
    assert finding("gpu-unusable", with_facts(asleep, "node02", gpu_work=later)).severity == "error"


def test_a_driver_that_is_only_being_loaded_is_allowed_for() -> None:
    driver = GpuDriver(GONE, GONE, GONE, "nvmlInit", "no answer within 5 s")
    found = finding("gpu-unusable", with_facts(cluster(2), "node02", gpu_driver=driver))
    assert found.severity == "error"
    assert "did not answer nvmlInit" in found.summary
    assert "persistence mode off" in found.summary
