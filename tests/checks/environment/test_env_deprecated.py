"""NC606 env-deprecated."""

from __future__ import annotations

import pytest

from tests.checks.environment.clusters import running
from tests.checks.running import finding, is_silent, run

SLUG = "env-deprecated"


@pytest.mark.parametrize(
    ("name", "nccl", "severity", "words"),
    [
        ("NCCL_TREE_THRESHOLD", "2.27.5", "warning", "no longer reads it (last in 2.4.8)"),
        ("NCCL_WORK_FIFO_DEPTH", "2.22.3", "warning", "NCCL_WORK_FIFO_BYTES replaces it"),
        ("NCCL_MNNVL", "2.21.5", "warning", "NCCL_MNNVL_ENABLE replaces it"),
        ("NCCL_SHM_USE_CUDA_MEMCPY", "2.30.7", "warning", "no longer"),
        ("NCCL_IB_CUDA_SUPPORT", "2.18.3", "warning", "no longer"),
        ("NCCL_MIN_NCHANNELS", "2.27.5", "info", "NCCL_MIN_CTAS replaces it"),
        ("NCCL_CHECK_POINTERS", "2.30.3", "info", "NCCL_CHECK_MODE replaces it"),
        (
            "NCCL_ASYNC_ERROR_HANDLING",
            "2.27.5",
            "info",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING replaces it",
        ),
        ("NCCL_RUN_DIAGNOSTICS", "2.30.7", "info", "from version 2.31.2"),
        ("ENABLE_NCCL_HEALTH_CHECK", "2.27.5", "warning", "last in 2.1)"),
    ],
)
def test_old_and_new_names(name: str, nccl: str, severity: str, words: str) -> None:
    found = finding(SLUG, running({name: "1"}, nccl))
    assert (found.severity, found.hosts) == (severity, ("node01", "node02"))
    assert f"{name}=1" in found.summary
    assert words in found.summary


@pytest.mark.parametrize(
    ("name", "nccl"),
    [
        ("NCCL_WORK_FIFO_DEPTH", "2.21.5"),
        ("NCCL_MNNVL", "2.20.5"),
        ("NCCL_CHECK_POINTERS", "2.28.9"),
        ("NCCL_RUN_DIAGNOSTICS", "2.32.3"),
        ("NCCL_IB_HCA", "2.18.3"),
        ("NCCL_RUN_DIAGNOSTICS", None),
        ("NCCL_IB_ADDR_RANGE", None),
    ],
)
def test_names_that_this_version_reads_are_silent(name: str, nccl: str | None) -> None:
    assert is_silent(SLUG, running({name: "1"}, nccl))


def test_without_a_version_only_what_all_do_is_told() -> None:
    assert finding(SLUG, running({"NCCL_TREE_THRESHOLD": "0"}, None)).severity == "warning"
    assert run(SLUG, running({"NCCL_WORK_FIFO_DEPTH": "1024"}, None)).outcome == "unknown"


def test_the_same_value_under_the_new_name_is_offered_where_it_means_the_same() -> None:
    assert finding(SLUG, running({"NCCL_MAX_NCHANNELS": "8"})).fixes[0].env == {"NCCL_MAX_CTAS": "8"}
    assert finding(SLUG, running({"NCCL_CHECK_POINTERS": "1"}, "2.30.3")).fixes[0].env == {}


def test_builds_of_torch_that_are_no_release_are_understood() -> None:
    found = finding(SLUG, running({"NCCL_BLOCKING_WAIT": "0"}, torch="2.6.0a0+ecf3bae40a.nv25.1"))
    assert "with torch 2.6.0" in found.summary
