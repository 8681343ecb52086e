"""NC403 gpu-busy."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuProcess
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_gpu

GIB = 1 << 30


def test_idle_gpus_are_silent() -> None:
    assert is_silent("gpu-busy", cluster(4))


@pytest.mark.parametrize(("used", "severity"), [(40 * GIB, "error"), (GIB, "warning"), (GONE, "warning")])
def test_a_stranger_is_named_with_what_it_takes(used: int | Missing, severity: str) -> None:
    stranger = GpuProcess(4711, used, "python3")
    found = finding("gpu-busy", with_gpu(cluster(4), "node03", 2, processes=(stranger,)))
    assert (found.severity, found.hosts) == (severity, ("node03",))
    assert "GPU 2 (0000:02:00.0): process 4711 (python3" in found.summary


def test_a_stranger_of_another_container_counts_though_it_has_no_name() -> None:
    stranger = GpuProcess(4711, GIB, Missing("absent", "not visible"))
    assert (
        "of another container"
        in finding("gpu-busy", with_gpu(cluster(2), "node01", 0, processes=(stranger,))).summary
    )


@pytest.mark.parametrize(
    "process", [GpuProcess(9, GIB, "python", own=True), GpuProcess(9, GIB, "nvidia-cuda-mps")]
)
def test_own_processes_and_services_do_not_count(process: GpuProcess) -> None:
    assert is_silent(
        "gpu-busy", with_gpu(cluster(2), "node01", 0, processes=(process,), memory_used_bytes=GIB * 20)
    )


def test_memory_in_use_by_nobody_that_is_seen_is_a_warning() -> None:
    found = finding("gpu-busy", with_gpu(cluster(4), "node03", 2, memory_used_bytes=60 * GIB))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "GPU 2 (0000:02:00.0): 61440 MiB" in found.summary


@pytest.mark.parametrize("field", ["processes", "memory_used_bytes"])
def test_what_was_not_read_is_unknown(field: str) -> None:
    result = run("gpu-busy", with_gpu(cluster(4), "node03", 2, **{field: GONE}))
    assert (result.outcome, "GPU 2" in result.reason) == ("unknown", True)
