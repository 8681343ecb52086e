"""Where a report goes."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from ncclcheck.cli import options
from ncclcheck.cli.outputs import SUMMARY_BYTES, refuse_bad_outputs, show, write_files
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import UsageError
from ncclcheck.model.formats.choices import SCREEN_FORMATS
from ncclcheck.model.report import Report
from ncclcheck.report.formats import rendered
from ncclcheck.report.text.terminal import render
from tests.report.reports import finding, found, report


def test_every_file_gets_the_format_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"a.json": "json", "b.TXT": "text", "c.xml": "junit", "d.md": "md", "e.html": "html"}
    given = {"output": tuple(str(tmp_path / name) for name in names), "format_": "text"}
    refuse_bad_outputs(given)
    assert write_files(report(), None, given) == ()
    assert show(report(), given)
    for name, format_ in names.items():
        assert (tmp_path / name).read_text() == rendered(report(), format_)  # type: ignore[arg-type]
    assert capsys.readouterr().out == render(report())


@pytest.mark.parametrize("format_", SCREEN_FORMATS)
def test_the_screen_takes_each_of_its_formats(format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(report(), {"format_": format_})
    assert capsys.readouterr().out == rendered(report(), format_)  # type: ignore[arg-type]


def test_the_option_offers_the_formats_that_there_are() -> None:
    command = options.output_format(click.Command("x"))
    (option,) = command.params
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == SCREEN_FORMATS


@pytest.mark.parametrize("file", ["report", "report.yaml", "report.json.gz", ".json", "report.csv"])
def test_a_name_without_a_known_suffix_is_refused(file: str) -> None:
    with pytest.raises(UsageError, match=r"name it \.json, \.xml, \.md, \.html, \.prom or \.txt"):
        refuse_bad_outputs({"output": (file,)})


def test_csv_is_refused_where_the_report_has_no_table() -> None:
    with pytest.raises(
        UsageError, match=r"x\.csv: only 'matrix' and 'bench --try' write CSV: name it \.json"
    ):
        refuse_bad_outputs({"output": ("x.csv",)})


@pytest.mark.parametrize("option", ["output", "save"])
def test_the_baseline_is_never_written_over(option: str, tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.touch()
    link = tmp_path / "link.json"
    link.symlink_to(good)
    for file in (good, link):
        given = {"baseline": str(good), option: (str(file),) if option == "output" else str(file)}
        with pytest.raises(UsageError, match=rf"--{option} .*: this is the --baseline, which has to stay"):
            refuse_bad_outputs(given)
    refuse_bad_outputs({"baseline": str(good), "output": (str(tmp_path / "new.json"),)})


# --- files that cannot be written ------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_written_is_named_and_the_others_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"output": (str(tmp_path / "gone" / "a.json"), str(tmp_path / "b.json")), "format_": "json"}
    unwritten = write_files(report(), None, given)
    assert [one.format_ for one in unwritten] == ["json"]
    assert show(report(), given, unwritten)
    streams = capsys.readouterr()
    assert decode(streams.out, Report) == report()
    assert (tmp_path / "b.json").exists()
    assert "a.json: cannot be written: No such file or directory" in streams.err


def test_what_no_file_took_follows_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"output": (str(tmp_path / "gone" / "a.json"),), "format_": "text"}
    assert show(report(), given, write_files(report(), None, given))
    text, _, document = capsys.readouterr().out.partition("\n==> ")
    assert text == render(report())
    heading, _, document = document.partition("\n")
    assert heading.endswith("a.json could not be written: this was to be in it")
    assert decode(document, Report) == report()


def test_a_stream_for_a_program_stays_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"output": (str(tmp_path / "gone" / "a.xml"),), "format_": "json"}
    assert show(report(), given, write_files(report(), None, given))
    streams = capsys.readouterr()
    assert decode(streams.out, Report) == report()
    assert rendered(report(), "junit") in streams.err


def test_instead_of_a_page_its_json_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"output": (str(tmp_path / "gone" / "a.html"),), "format_": "text"}
    assert show(report(), given, write_files(report(), None, given))
    out = capsys.readouterr().out
    assert "'ncclcheck report FILE.json --output FILE.html' makes it of this JSON" in out
    assert json.loads(out[out.index("\n{") :])["schema_version"] == "1"


# --- GitHub's step summary -------------------------------------------------------------------------------------------


def test_the_step_summary_is_markdown_after_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "step_summary_0123"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    given = {"output": (str(file),)}
    refuse_bad_outputs(given)
    assert write_files(report(), None, given) == ()
    assert file.read_text() == "before\n" + rendered(report(), "md")


def test_a_step_summary_is_cut_at_a_line_where_it_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "step_summary_0123"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    many = [finding("mtu-differs", f"node{number:05}", summary=f"{number} " * 20) for number in range(9000)]
    write_files(report([found(*many)]), None, {"output": (str(file),)})
    text = file.read_text()
    assert SUMMARY_BYTES - 2000 < len(text.encode()) <= SUMMARY_BYTES
    assert text.endswith("(1 MiB): give `--output report.html` as well.**\n")
