"""`ncclcheck soak` on one node, and the report of its folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ncclcheck.cli.benchmarks import soak_request
from ncclcheck.cli.main import run_command

pytestmark = pytest.mark.slow


def test_a_short_soak_is_inconclusive_and_its_folder_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(soak_request, "shortest_s", lambda *_: 0.0)  # else it would be refused
    folder, file = tmp_path / "soak", tmp_path / "report.json"
    words = ["--quiet", "--no-preflight", "--size", "4K", "--duration", "10s", "--every", "2s"]
    select = ["--select", "soak-drop", "--output", str(file)]
    assert run_command(["soak", "--state", str(folder), *words, *select]) == 3
    assert "too short to tell" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert report["command"] == "soak"
    assert report["soak"]["blocks"] >= 3
    assert run_command(["report", str(folder), "--format", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["soak"]["blocks"] == report["soak"]["blocks"]
    assert run_command(["soak", "--state", str(folder), *words]) == 2
    assert "--resume continues it" in capsys.readouterr().err
    assert run_command(["soak", "--resume", str(tmp_path / "none"), *words]) == 2
    assert "No such file" in capsys.readouterr().err
    shutil.rmtree(folder)
    assert run_command(["report", str(tmp_path)]) == 2
