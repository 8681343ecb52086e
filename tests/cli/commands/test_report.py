"""`ncclcheck report`: a saved report in another format, and the schema of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.model.formats.choices import NODE_LISTS
from ncclcheck.report.document import schema_text, to_json
from ncclcheck.report.formats import rendered
from ncclcheck.report.text.terminal import render
from tests.builders import cluster, with_silent
from tests.cli.command_line import clean_environment, ncclcheck, refused, saved_run
from tests.matrix_builders import fabric, matrix_report
from tests.report.reports import ADVICE, check_run, found, mtu_finding, report

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
    assert "which FILE?" in refused(ncclcheck("report"))


def test_a_saved_run_is_judged_with_the_usual_options(tmp_path: Path) -> None:
    saved_run(tmp_path / "run.json")
    done = ncclcheck("report", "run.json", "--format", "json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    again = ncclcheck("preflight", "--from", "run.json", "--format", "json", cwd=tmp_path)
    assert json.loads(done.out)["checks"] == json.loads(again.out)["checks"]


def test_all_formats_are_written_at_once(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(to_json(MADE))
    names = ("a.xml", "b.md", "c.html", "d.txt", "e.json")
    outputs = [part for name in names for part in ("--output", name)]
    done = ncclcheck("report", "r.json", *outputs, "--format", "github", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("::error title=")
    assert all((tmp_path / name).stat().st_size for name in names)


@pytest.mark.parametrize("format_", NODE_LISTS)
def test_a_list_of_nodes_takes_a_report_of_tests_between_nodes(tmp_path: Path, format_: str) -> None:
    (tmp_path / "r.json").write_text(to_json(MADE))
    why = refused(ncclcheck("report", "r.json", "--format", format_, cwd=tmp_path))
    assert f"report r.json --format {format_}: this report has no section 'isolation'" in why
    assert "'ncclcheck isolate'" in why
    assert ("'ncclcheck matrix'" in why) is (format_ == "hostfile")


def test_a_hostfile_is_made_of_a_matrix_as_well(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(to_json(matrix_report(fabric())))
    done = ncclcheck("report", "r.json", "--format", "hostfile", cwd=tmp_path)
    assert (done.code, done.out) == (0, "node01\nnode02\nnode03\nnode04\n")
    assert "no section 'isolation'" in refused(
        ncclcheck("report", "r.json", "--format", "cordon", cwd=tmp_path)
    )


# --- compare ---------------------------------------------------------------------------------------------------------

CALM = report([check_run("mtu-differs")], advice=ADVICE)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "old.json").write_text(to_json(CALM))
    (tmp_path / "new.json").write_text(to_json(MADE))
    return tmp_path


def test_a_regression_gives_exit_code_1(two: Path) -> None:
    done = ncclcheck("report", "compare", "old.json", "new.json", cwd=two)
    assert (done.code, done.err) == (1, "")
    assert "also: error gained: mtu-differs on node[02-03]" in done.out
    assert done.out.splitlines()[-1].startswith("exit 1: the verdict was pass and is fail: ")
    back = ncclcheck("report", "compare", "new.json", "old.json", cwd=two)
    assert back.code == 0
    assert "gone  error  NC213 mtu-differs  on node[02-03]" in back.out


def test_changes_come_as_json_and_markdown_too(two: Path) -> None:
    done = ncclcheck("report", "compare", "--format", "json", "old.json", "new.json", cwd=two)
    assert json.loads(done.out)["findings"][0]["slug"] == "mtu-differs"
    done = ncclcheck("report", "compare", "--format", "md", "old.json", "new.json", cwd=two)
    assert done.out.startswith("# ❌ 2 things got worse")


def test_what_cannot_be_compared_is_refused(two: Path) -> None:
    assert "give two, the older one first" in refused(ncclcheck("report", "compare", "old.json", cwd=two))
    for text in ("nan", "-1", "101", "much"):
        done = ncclcheck("report", "compare", "--tolerance", text, "old.json", "new.json", cwd=two)
        assert f"--tolerance '{text}': expected a percentage from 0 to 90" in refused(done)
    assert "there is no such file" in refused(
        ncclcheck("report", "compare", "old.json", "gone.json", cwd=two)
    )


# --- disks that are full ---------------------------------------------------------------------------------------------


def test_a_full_disk_is_one_sentence_and_the_report_is_on_standard_output(two: Path) -> None:
    (two / "full.xml").symlink_to("/dev/full")
    done = ncclcheck("report", "new.json", "--output", "full.xml", cwd=two)
    assert done.code == 2
    assert done.err == "ncclcheck: error: --output full.xml: cannot be written: No space left on device\n"
    text, _, document = done.out.partition("\n==> full.xml could not be written: this was to be in it\n")
    assert text == render(MADE)
    assert document == rendered(MADE, "junit")


def test_a_run_keeps_its_exit_code_where_the_file_cannot_be_written(tmp_path: Path) -> None:
    saved_run(tmp_path / "run.json", with_silent(cluster(2), "node02"))
    (tmp_path / "full.json").symlink_to("/dev/full")
    done = ncclcheck("preflight", "--from", "run.json", "--output", "full.json", cwd=tmp_path)
    assert done.code == 3
    assert "full.json: cannot be written: No space left on device" in done.err
    saved_run(tmp_path / "healthy.json")
    assert ncclcheck("preflight", "--from", "healthy.json", "--output", "full.json", cwd=tmp_path).code == 2


def test_a_full_standard_output_does_not_lose_the_report(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(to_json(MADE))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncclcheck", "report", "r.json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env=clean_environment(PYTHONPATH=str(Path(__file__).parents[3])),
        )
    assert done.returncode == 2
    first, _, document = done.stderr.partition("\n")
    assert (
        first
        == "ncclcheck: error: standard output cannot be written: No space left on device: this was to be on it"
    )
    assert document == render(MADE)


def test_merge_makes_one_report_of_files_of_every_kind(tmp_path: Path) -> None:
    saved = [saved_run(tmp_path / "one.json", cluster(1)), saved_run(tmp_path / "four.json")]
    (tmp_path / "report.json").write_text(ncclcheck("node", "--from", saved[0], "--format", "json").out)
    done = ncclcheck(
        "report", "merge", "report.json", "four.json", "--output", "f.html", "--output", "f.prom", "--quiet",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.code == 0, done
    assert done.out.splitlines()[-1].startswith("exit 0: ")
    assert "fleet: 2 reports" in done.out
    assert (tmp_path / "f.html").stat().st_size > 10_000
    assert (tmp_path / "f.prom").read_text().endswith("# EOF\n")


def test_merge_says_which_file_is_none_and_is_no_pass(tmp_path: Path) -> None:
    good = saved_run(tmp_path / "good.json", cluster(1))
    (tmp_path / "cut.json").write_text('{"schema_version": "1", "verd')
    done = ncclcheck("report", "merge", good, "cut.json", cwd=tmp_path)
    assert done.code == 3
    assert done.out.splitlines()[-1].startswith("exit 3: no report in cut.json: not a document of ncclcheck")
    assert "cut.json: not a document" in refused(ncclcheck("report", "merge", "cut.json", cwd=tmp_path))
    assert "which FILES?" in refused(ncclcheck("report", "merge"))
