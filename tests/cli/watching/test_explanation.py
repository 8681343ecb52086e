"""`explain` over what a watcher kept: output, NCCL's log, recorder dumps, and two answers of RAS."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.cli.watching.explanation import explained_by
from ncclcheck.cli.watching.findings import report_of, sentence
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.watched import Watch
from ncclcheck.model.report import Report
from ncclcheck.report.watch_report import JobEnd
from ncclcheck.run.judge import start_clock
from tests.logs.ras_answers import MISSING_JSON_2_28_9, as_json

OOM = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 3 has a total capacity of "
    "44.40 GiB of which 512.00 MiB is free.\n"
)


def _explained(folder: Path, *output: Path) -> Report:
    report = explained_by(folder, output, start_clock())
    assert not isinstance(report, Missing)
    return report


def _ras(folder: Path, before: str, now: str) -> None:
    for number, texts in ((1, ("{}", "{}")), (2, (before, now))):
        place = folder / f"look-{number}"
        place.mkdir()
        for name, text in zip(("ras-before.log", "ras.log"), texts, strict=True):
            (place / name).write_text(text)


def test_the_output_names_the_cause_and_the_report_has_it_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "stderr.log").write_text("step 1\n" + OOM)
    explained = _explained(tmp_path, tmp_path / "stderr.log")
    assert "the cause: cuda-oom on rank 3: " in sentence(explained)
    assert "CUDA out of memory" in sentence(explained)
    report = report_of(Watch("ok"), JobEnd(1, "the job ended with exit code 1"), start_clock(), explained)
    assert (report.verdict.exit_code, report.command) == (1, "watch")
    assert report.findings[0].slug == "cuda-oom"
    assert "cuda-oom" in [check.slug for check in report.checks]
    assert report.verdict.reasons == ("the job ended with exit code 1", "the cause: cuda-oom")


def test_the_last_two_answers_of_ras_name_the_rank_that_is_behind(tmp_path: Path) -> None:
    uneven = as_json({0: 7, 1: 7, 2: 6, 3: 7})
    _ras(tmp_path, uneven, uneven)
    assert "rank 2" in sentence(_explained(tmp_path))


def test_an_answer_of_2_28_9_which_lacks_a_comma_is_read(tmp_path: Path) -> None:
    _ras(tmp_path, MISSING_JSON_2_28_9, MISSING_JSON_2_28_9)
    assert "rank" in sentence(_explained(tmp_path))


def test_what_explain_cannot_name_is_in_the_report_and_not_said(tmp_path: Path) -> None:
    line = "node03:47:48 [3] NCCL WARN Something that nobody knows\n"
    (tmp_path / "stderr.log").write_text(line + "[rank3]: torch.distributed.DistBackendError: NCCL error\n")
    explained = _explained(tmp_path, tmp_path / "stderr.log")
    assert sentence(explained) == ""
    report = report_of(Watch("ok"), JobEnd(1, "the job ended with exit code 1"), start_clock(), explained)
    assert [finding.slug for finding in report.findings] == ["undetermined"]


def test_where_nothing_was_kept_or_nothing_is_named_nothing_is_said(tmp_path: Path) -> None:
    explained = _explained(tmp_path)
    assert sentence(explained) == ""
    report = report_of(Watch("ok"), None, start_clock(), explained)
    assert report == report_of(Watch("ok"), None, start_clock()) or not report.findings
    (tmp_path / "stdout.log").write_text("hello\n")
    assert sentence(_explained(tmp_path, tmp_path / "stdout.log")) == ""
