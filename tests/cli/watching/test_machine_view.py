"""What NCCL's RAS and the kernel's log tell of a job that stands still."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.cli.watching.evidence import keep_files
from ncclcheck.cli.watching.machine_view import ask_ras, counts_grew, gpu_errors, view_machine
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuLog, LoggedError
from tests.exchange.ras_server import serving
from tests.logs.ras_answers import MISSING_JSON_2_28_9, as_json
from tests.ports import free_port


def test_the_answer_of_ras_is_kept(tmp_path: Path) -> None:
    with serving(["Job summary\n"]) as server:
        view = view_machine("node1", f"127.0.0.1:{server.port}")
    assert view.files["ras.log"] == b"Job summary\n"
    files = keep_files(tmp_path, 1, view.files)
    assert (tmp_path / "look-1" / "ras.log").read_bytes() == b"Job summary\n"
    assert str(tmp_path / "look-1" / "ras.log") in files
    assert keep_files(tmp_path, 1000, view.files) == []


def test_without_ras_nothing_is_kept_of_it() -> None:
    assert "ras.log" not in view_machine("node1", f"127.0.0.1:{free_port()}").files
    assert "ras.log" not in view_machine("node1", "not:an:address").files
    assert "ras.log" not in view_machine("node1", "").files


def test_a_recent_error_of_a_gpu_is_told_and_an_old_one_is_not() -> None:
    recent = LoggedError("Xid", 79, "0000:1b:00.0", 30.0, "GPU has fallen off the bus")
    old = LoggedError("Xid", 31, "0000:1b:00.0", 90_000.0, "MMU fault")
    (line,) = gpu_errors("node1", GpuLog("/dev/kmsg", (recent, old)))
    assert line == ("the kernel of node1 logged Xid 79 at 0000:1b:00.0 30 s ago: GPU has fallen off the bus")
    assert gpu_errors("node1", Missing("denied", "dmesg_restrict")) == ()


def test_two_answers_of_ras_tell_whether_the_job_advances() -> None:
    answers = [as_json({0: 7, 1: 7}), as_json({0: 8, 1: 8}), as_json({0: 8, 1: 8})]
    with serving([""], answers) as server:
        address = f"127.0.0.1:{server.port}"
        first = ask_ras(address)
        view = view_machine("node1", address, first)
        assert view.advances
        assert (view.files["ras-before.log"], view.files["ras.log"]) == (first, answers[1].encode())
        assert not view_machine("node1", address, view.files["ras.log"]).advances


def test_an_answer_of_2_28_9_or_one_that_is_damaged_is_no_advance() -> None:
    lacks_a_comma = MISSING_JSON_2_28_9.encode()
    assert not counts_grew(lacks_a_comma, lacks_a_comma)
    assert not counts_grew(b"{", lacks_a_comma)
    assert not counts_grew(b"", lacks_a_comma)


def test_counts_of_a_job_that_none_of_the_ranks_belongs_to_are_no_advance() -> None:
    before, now = as_json({0: 7, 1: 7}).encode(), as_json({0: 8, 1: 8}).encode()
    assert counts_grew(before, now, {1001})
    assert not counts_grew(before, now, {4711})
