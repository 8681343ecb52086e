"""NC404 gpu-ecc."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_all_gpus, with_gpu

FIELDS = {
    "ecc_uncorrected_volatile": (3, "error"),
    "remap_failed": (True, "error"),
    "remap_pending": (True, "warning"),
}


def test_healthy_memory_is_silent() -> None:
    assert is_silent("gpu-ecc", cluster(4))


@pytest.mark.parametrize("field", FIELDS)
def test_each_fault_names_the_gpu(field: str) -> None:
    value, severity = FIELDS[field]
    found = finding("gpu-ecc", with_gpu(cluster(4), "node02", 6, **{field: value}))
    assert (found.severity, found.hosts) == (severity, ("node02",))
    assert "GPU 6 (0000:06:00.0)" in found.summary


def test_errors_of_earlier_times_are_not_held_against_it() -> None:
    assert is_silent("gpu-ecc", with_gpu(cluster(4), "node02", 6, ecc_uncorrected_aggregate=12))


@pytest.mark.parametrize("field", FIELDS)
def test_what_was_not_read_is_unknown(field: str) -> None:
    assert run("gpu-ecc", with_gpu(cluster(4), "node02", 6, **{field: GONE})).outcome == "unknown"


def test_gpus_without_ecc_are_not_judged() -> None:
    without = with_all_gpus(cluster(2), **dict.fromkeys(FIELDS, Missing("unsupported", "no ECC")))
    assert run("gpu-ecc", without).outcome == "not_applicable"
