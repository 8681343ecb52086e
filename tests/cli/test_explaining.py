"""From files to the report: a pure function of what was read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ncclcheck.cli.explaining import explain_files, explain_ras
from ncclcheck.report.document import schema_text, to_json
from tests.exchange.ras_server import saying, serving
from tests.logs.ras_answers import HEALTHY
from tests.logs.ras_answers import as_json as ras_json
from tests.logs.recorder.dumps import as_json, as_pickle, dump, entry, history


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


def test_dumps_beside_a_log_of_hosts(tmp_path: Path) -> None:
    for rank in range(4):
        entries = history(6, waits=False) if rank == 2 else history(7)
        data = as_pickle(dump(entries)) if rank % 2 else as_json(dump(entries))
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(data)
    (tmp_path / "z.log").write_text(
        "\n".join(
            f"node{rank}:100:200 [0] NCCL INFO comm 0x1 rank {rank} nRanks 4 nNodes 4" for rank in range(4)
        )
    )
    report = explain_files([str(tmp_path)])
    assert report.verdict.exit_code == 1
    assert report.findings[0].slug == "slow-rank-timeout"
    assert "rank 2" in report.findings[0].hosts


def test_the_exception_of_the_rank_that_is_behind_comes_first(tmp_path: Path) -> None:
    for rank in range(4):
        entries = history(6, waits=False) if rank == 2 else history(7)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(as_pickle(dump(entries)))
    (tmp_path / "job.log").write_text(
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/home/me/train.py", line 7, in <module>\n'
        "[rank2]: ValueError: Sample 7 is broken\n"
    )
    findings = explain_files([str(tmp_path)]).findings
    assert [finding.slug for finding in findings][:2] == ["rank-exception", "slow-rank-timeout"]
    assert [finding.severity for finding in findings][:2] == ["error", "warning"]


def test_a_rank_without_a_dump_is_no_certain_cause(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(as_pickle(dump(history(7))))
    report = explain_files([str(tmp_path)])
    assert report.verdict.exit_code == 3
    assert any(
        "rank 2" in finding.hosts for finding in report.findings if finding.slug == "slow-rank-timeout"
    )


def test_other_collectives_at_one_step(tmp_path: Path) -> None:
    for rank in range(4):
        entries = [*history(6, waits=False), entry(7, elements=8 + (rank == 1), state="started")]
        (tmp_path / f"trace_{rank}.json").write_bytes(gzip.compress(as_json(dump(entries))))
    (first, *_) = explain_files([str(tmp_path)]).findings
    assert (first.slug, first.severity, first.hosts) == ("collective-mismatch", "error", ("rank 1",))


def test_a_dump_that_is_damaged_hostile_or_of_nobody(tmp_path: Path) -> None:
    whole = as_pickle(dump(history(7)))
    (tmp_path / "nccl_trace_rank_0").write_bytes(whole[:-50])
    (tmp_path / "nccl_trace_rank_1").write_bytes(whole[:-2] + b"cos\nsystem\n.")
    (tmp_path / "dump").write_bytes(whole)
    (tmp_path / "nccl_trace_rank_3").write_bytes(whole)
    report = explain_files([str(tmp_path)])
    unread = {Path(file.name).name: file.unread for file in report.log.files} if report.log else {}
    assert "damaged" in unread["nccl_trace_rank_0"]
    assert "object in it" in unread["nccl_trace_rank_1"]
    assert "of which rank" in unread["dump"]
    assert unread["nccl_trace_rank_3"] == ""


@pytest.mark.slow
def test_ras_names_the_rank_that_is_behind() -> None:
    with serving(["text"], [ras_json({**dict.fromkeys(range(8), 40), 5: 39})]) as server:
        report = explain_ras(f"127.0.0.1:{server.port}")
    assert report.verdict.exit_code == 1
    assert (report.findings[0].slug, report.findings[0].hosts) == (
        "slow-rank-timeout",
        ("10.0.0.2", "rank 5"),
    )


@pytest.mark.slow
def test_ras_of_a_job_that_goes_on_and_of_one_that_stands() -> None:
    with serving(["text"], [ras_json({0: 1, 1: 1}), ras_json({0: 2, 1: 1})]) as server:
        assert explain_ras(f"127.0.0.1:{server.port}").verdict.exit_code == 0
    with serving([HEALTHY]) as server:
        report = explain_ras(f"127.0.0.1:{server.port}")
    assert report.verdict.exit_code == 3
    assert "do not grow" in report.verdict.reasons[0] or "same collective" in report.verdict.reasons[0]


def test_nobody_at_the_address_of_ras() -> None:
    with saying(b"SSH-2.0-OpenSSH_9.6\n") as port:
        report = explain_ras(f"127.0.0.1:{port}")
    assert (report.verdict.status, report.verdict.exit_code) == ("unknown", 3)
    (reason,) = report.verdict.reasons
    assert "is not NCCL RAS" in reason
