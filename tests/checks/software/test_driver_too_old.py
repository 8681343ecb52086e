"""NC507 driver-too-old."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuDriver
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, software

ABSENT = Missing("absent", "no driver")


def versions(
    torch_cuda: str | Missing, libcuda: str | Missing, driver: str | Missing = "570.86.15"
) -> Snapshot:
    """node02 has that torch and that driver."""
    return with_facts(
        cluster(4),
        "node02",
        software=software(torch_cuda=torch_cuda, driver=driver),
        gpu_driver=GpuDriver(driver, libcuda, 0.4),
    )


@pytest.mark.parametrize(
    ("torch_cuda", "libcuda"),
    [
        ("12.8", "12.8"),
        ("12.8", "12.2"),
        ("12.8", "13.0"),
        ("11.8", "12.4"),
        ("12.1", "13.1"),
        ("13.0", "13.0"),
    ],
)
def test_a_driver_of_the_same_major_version_or_newer_is_enough(torch_cuda: str, libcuda: str) -> None:
    assert is_silent("driver-too-old", versions(torch_cuda, libcuda))


@pytest.mark.parametrize(("torch_cuda", "libcuda"), [("12.8", "11.8"), ("13.0", "12.9")])
def test_a_driver_of_an_older_major_version_is_too_old(torch_cuda: str, libcuda: str) -> None:
    found = finding("driver-too-old", versions(torch_cuda, libcuda))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert f"its CUDA is {libcuda}" in found.summary
    assert torch_cuda in found.summary


@pytest.mark.parametrize(
    ("torch_cuda", "driver", "enough"),
    [
        ("12.8", "525.60.13", True),
        ("12.8", "525.60.11", False),
        ("12.8", "470.129.06", False),
        ("11.8", "450.80.02", True),
        ("13.0", "570.86.15", False),
        ("13.0", "580.65.06", True),
        ("13.0", "580.65.05", False),
        ("11.8", "450.80.01", False),
        ("10.2", "440.33.01", True),
        ("10.2", "418.87", False),
    ],
)
def test_the_version_of_the_driver_decides_where_its_cuda_is_not_told(
    torch_cuda: str, driver: str, enough: bool
) -> None:
    result = run("driver-too-old", versions(torch_cuda, GONE, driver))
    assert result.outcome == ("passed" if enough else "found")


def test_the_libcuda_of_a_container_counts_whatever_the_driver_is() -> None:
    assert is_silent("driver-too-old", versions("12.8", "12.8", "470.129.06"))


def test_what_was_not_read_is_unknown() -> None:
    assert run("driver-too-old", versions("12.8", GONE, GONE)).outcome == "unknown"
    assert run("driver-too-old", versions(GONE, "12.8")).outcome == "unknown"
    assert run("driver-too-old", versions("99.1", GONE)).outcome == "unknown"


def test_no_gpu_or_no_cuda_in_torch_raises_no_question() -> None:
    bare = everywhere(cluster(2), gpus=ABSENT, gpu_driver=ABSENT)
    assert run("driver-too-old", bare).outcome == "not_applicable"
    cpu = everywhere(cluster(2), software=software(torch_cuda=Missing("absent", "built without it")))
    assert run("driver-too-old", cpu).outcome == "not_applicable"
