"""`ncclcheck report`: a saved report in another format, and the schema of it."""

from __future__ import annotations

import json
from pathlib import Path

from ncclcheck.report.document import schema_text, to_json
from ncclcheck.report.terminal import render
from tests.cli.commands import ncclcheck, refused, saved_run
from tests.report.reports import ADVICE, found, mtu_finding, report

MADE = report([found(mtu_finding())], advice=ADVICE)


def test_a_report_is_shown_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(to_json(MADE))
    done = ncclcheck("report", "r.json", "--output", "r.txt", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, render(MADE), "")
    assert (tmp_path / "r.txt").read_text() == render(MADE)
    again = ncclcheck("report", "r.json", "--format", "json", cwd=tmp_path)
    assert again.out == (tmp_path / "r.json").read_text()


def test_the_schema_is_printed() -> None:
    done = ncclcheck("report", "--schema")
    assert done.out == schema_text()
    assert json.loads(done.out)["$ref"] == "#/$defs/Report"


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(to_json(MADE)[:-100])
    assert "report cut.json: not a document of ncclcheck" in refused(
        ncclcheck("report", "cut.json", cwd=tmp_path)
    )
    saved_run(tmp_path / "run.json")
    assert "ncclcheck preflight --from run.json" in refused(ncclcheck("report", "run.json", cwd=tmp_path))
    assert "which FILE?" in refused(ncclcheck("report"))
