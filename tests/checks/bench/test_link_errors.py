"""What is said of NVLink errors and PCIe replays that one GPU counts while the benchmark runs."""

from __future__ import annotations

import pytest

from ncclcheck.checks.bench._link_errors import FEWEST, link_error_findings
from ncclcheck.model.bench import GpuHealth, GpuSpeed, Isolation
from ncclcheck.model.fact import Fact, Missing
from tests.bench_builders import with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent

UNTOLD = Missing("unsupported", "the driver counts none")


def speeds(errors: dict[int, int], replays: dict[int, int], ranks: int = 16) -> tuple[GpuSpeed, ...]:
    """GPUs of two nodes that are equally fast, with what their counters grew by."""
    return tuple(
        GpuSpeed(
            rank,
            f"node0{rank // 8 + 1}",
            "H100",
            1980.0,
            700.0,
            2500.0,
            55.0,
            GpuHealth(f"0000:0{rank % 8}:00.0", (), errors.get(rank, 0), replays.get(rank, 0)),
        )
        for rank in range(ranks)
    )


def test_a_gpu_that_counts_errors_alone_is_named_with_what_to_do() -> None:
    """Its transfers and its clock are as fast as the others': nothing else would say it."""
    slow = with_bench(cluster(2), isolation=Isolation(gpus=speeds({11: 5000}, {11: 900})))
    found = finding("bench-slow-rank", slow)
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "rank 11 on node02: the links of its GPU 0000:03:00.0 made errors" in found.summary
    assert "5000 NVLink errors and 900 PCIe replays" in found.summary
    assert [(seen.subject, seen.observed) for seen in found.evidence] == [
        ("new NVLink errors", "5000"),
        ("new PCIe replays", "900"),
    ]
    assert [fix.commands for fix in found.fixes] == [
        ("nvidia-smi nvlink -e -i 0000:03:00.0",),
        ("nvidia-smi -i 0000:03:00.0 -q -d PCIE; dmesg | grep -i aer",),
    ]


@pytest.mark.parametrize(
    "replays", [{}, {3: FEWEST - 1}, dict.fromkeys(range(16), 40), {rank: 30 + rank for rank in range(16)}]
)
def test_few_errors_and_errors_of_all_gpus_are_no_finding(replays: dict[int, int]) -> None:
    healthy = with_bench(cluster(2), isolation=Isolation(gpus=speeds({}, replays)))
    assert is_silent("bench-slow-rank", healthy)


def test_both_ends_of_a_link_and_a_gpu_beside_others_that_tell_nothing() -> None:
    assert [found.hosts for found in link_error_findings(speeds({2: 50, 3: 70}, {}), set())] == [
        ("node01",),
        ("node01",),
    ]
    assert not list(link_error_findings(speeds({0: 5000}, {}, ranks=1), set()))
    untold: Fact[int] = UNTOLD
    silent = tuple(
        GpuSpeed(gpu.rank, gpu.host, "H100", 1.0, 1.0, 1.0, 1.0, GpuHealth("", (), untold, untold))
        for gpu in speeds({}, {})
    )
    assert not list(link_error_findings(silent, set()))


def test_where_a_gpu_is_named_already_its_counters_are_evidence_there() -> None:
    assert not list(link_error_findings(speeds({11: 5000}, {}), {11}))
