"""NC709 disk-full."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, path_fact

GIB = 1 << 30


def seen(purpose: Literal["data", "shared"] = "shared", **changes: Any) -> Snapshot:
    return with_facts(
        everywhere(cluster(2), paths=(path_fact(purpose),)), "node02", paths=(path_fact(purpose, **changes),)
    )


def test_a_full_folder_for_checkpoints_is_an_error() -> None:
    found = finding("disk-full", seen(free_bytes=5 << 20, size_bytes=1000 * GIB))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "5 MiB of 1000.0 GiB are free" in found.summary


def test_nearly_full_is_a_warning_and_ample_room_of_a_large_disk_is_not() -> None:
    assert finding("disk-full", seen(free_bytes=20 * GIB, size_bytes=1000 * GIB)).severity == "warning"
    assert is_silent("disk-full", seen(free_bytes=200 * GIB, size_bytes=100_000 * GIB))


def test_no_more_files_can_be_made() -> None:
    assert "3 files can still be created" in finding("disk-full", seen(free_inodes=3)).summary
    assert is_silent("disk-full", seen(free_inodes=None))


def test_data_that_is_only_read_matters_less() -> None:
    assert finding("disk-full", seen("data", free_bytes=0)).severity == "warning"
    assert is_silent("disk-full", seen("data", free_bytes=0, read_only=True))


@pytest.mark.parametrize("field", ["free_bytes", "size_bytes", "free_inodes"])
def test_what_could_not_be_read_is_not_passed(field: str) -> None:
    assert run("disk-full", seen("shared", **{field: GONE})).outcome == "unknown"
