"""What is said of a slow GPU."""

from __future__ import annotations

from ncclcheck.checks.bench._gpus import gpu_findings
from ncclcheck.measure.blame_gpus import SlowGpu
from ncclcheck.model.bench import GpuHealth


def test_the_slow_parts_of_a_gpu_are_one_finding() -> None:
    parts = (
        SlowGpu(2, "node03", "slow memory", "copy within its memory", "GB/s", 1000.0, 2500.0),
        SlowGpu(2, "node03", "slow PCIe", "copy from its host", "GB/s", 25.0, 55.0),
    )
    (found,) = gpu_findings(parts)
    assert "slow memory (copy within its memory: 1000 GB/s, the others 2500 GB/s)" in found.summary
    assert "slow PCIe (copy from its host: 25 GB/s, the others 55 GB/s)" in found.summary
    assert "NVML" not in found.summary
    assert found.fixes[1].commands == ("nvidia-smi -q -d PCIE; nvidia-smi topo -m",)


def test_errors_of_links_during_the_run_are_evidence() -> None:
    health = GpuHealth("0000:1b:00.0", (), 0, 31)
    (found,) = gpu_findings([SlowGpu(0, "node01", "slow PCIe", "copy", "GB/s", 25.0, 55.0, health)])
    assert [(seen.subject, seen.observed) for seen in found.evidence[1:]] == [("new PCIe replays", "31")]
