"""Where a report goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import UsageError
from ncclcheck.model.report import Report
from ncclcheck.report.terminal import render
from tests.report.reports import report


def test_every_file_gets_the_format_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = (str(tmp_path / "a.json"), str(tmp_path / "b.TXT"))
    given = {"output": files, "format_": "text"}
    assert write_files(report(), None, given)
    show(report(), given)
    assert decode((tmp_path / "a.json").read_text(), Report) == report()
    assert (tmp_path / "b.TXT").read_text() == render(report()) == capsys.readouterr().out


def test_a_file_that_cannot_be_written_does_not_lose_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (str(tmp_path / "gone" / "a.json"), str(tmp_path / "b.json"))
    given = {"output": files, "format_": "json"}
    assert not write_files(report(), None, given)
    show(report(), given)
    streams = capsys.readouterr()
    assert decode(streams.out, Report) == report()
    assert (tmp_path / "b.json").exists()
    assert "a.json: cannot be written: No such file or directory" in streams.err


@pytest.mark.parametrize("file", ["report", "report.xml", "report.json.gz", ".json"])
def test_a_name_without_a_known_suffix_is_refused(file: str) -> None:
    with pytest.raises(UsageError, match=r"name it \.json or \.txt"):
        refuse_bad_outputs({"output": (file,)})
