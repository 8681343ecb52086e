"""From files to the report: a pure function of what was read."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from ncclcheck.report.document import schema_text, to_json
from ncclcheck.run.explaining import explain_files


def test_the_report_fits_its_schema_and_is_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    report, again = explain_files([str(path)]), explain_files([str(path)])
    document = json.loads(to_json(report))
    Draft202012Validator(json.loads(schema_text())).validate(document)
    assert report.findings == again.findings
    assert (report.verdict.status, report.verdict.exit_code) == ("fail", 1)
    assert document["findings"][0]["slug"] == "cuda-oom"
    assert document["findings"][0]["evidence"][0]["source"] == f"{path}:1"
