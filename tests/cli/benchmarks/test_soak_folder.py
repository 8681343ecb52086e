"""The folder of a soak as a report."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ncclcheck.bench.soak.soak_record import SoakRecord
from ncclcheck.cli import files
from ncclcheck.cli.benchmarks.soak_folder import report_of_folder
from ncclcheck.cli.files import is_folder
from ncclcheck.model.benchmarks.soak import SoakBlock, SoakEnd, SoakStart
from ncclcheck.model.errors import UsageError
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import dropped_lines


def test_a_series_is_judged_with_what_was_known_of_its_nodes(tmp_path: Path) -> None:
    record = SoakRecord(str(tmp_path))
    record.keep_nodes(cluster(4))
    for line in dropped_lines():
        if isinstance(line, SoakStart):
            record.begin(line)
        elif isinstance(line, SoakBlock):
            record.add(line)
        else:
            record.end(line)
    report = report_of_folder(str(tmp_path))
    assert is_folder(str(tmp_path))
    assert report.verdict.exit_code == 4
    assert [finding.slug for finding in report.findings] == ["soak-drop"]
    passed = {entry.slug for entry in report.checks if entry.outcome == "passed"}
    assert passed >= {"soak-tail", "link-flap", "soak-wrong-data", "bench-hang"}


def test_one_that_still_runs_is_inconclusive_and_an_empty_folder_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"blocks\.jsonl"):
        report_of_folder(str(tmp_path))
    record = SoakRecord(str(tmp_path))
    for line in dropped_lines()[:20]:
        if isinstance(line, SoakStart):
            record.begin(line)
        elif not isinstance(line, SoakEnd):
            record.add(line)
    with pytest.raises(UsageError, match=r"nodes\.json"):
        report_of_folder(str(tmp_path))
    record.keep_nodes(cluster(4))
    assert "the soak has not ended" in report_of_folder(str(tmp_path)).verdict.reasons


def test_a_name_that_is_too_long_and_a_mount_that_hangs_are_no_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not is_folder("x" * 300)
    held = threading.Event()
    monkeypatch.setattr(files, "USER_FILE_S", 0.1)
    monkeypatch.setattr(os.path, "isdir", lambda _: held.wait(60))
    assert not is_folder("there")
    held.set()
