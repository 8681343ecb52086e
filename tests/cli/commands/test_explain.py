"""`ncclcheck explain` as a user calls it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from tests.cli.command_line import ncclcheck, refused


def test_the_cause_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("3: RuntimeError: CUDA error: invalid device ordinal\n")
    done = ncclcheck("explain", str(tmp_path), "--format", "json")
    document = json.loads(done.out)
    assert (done.code, document["verdict"]["status"]) == (1, "fail")
    assert (document["findings"][0]["slug"], document["findings"][0]["hosts"]) == (
        "gpu-visibility",
        ["rank 3"],
    )
    assert document["log"]["files"][0]["lines"] == 1


def test_a_report_is_written_and_shown_again(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("ValueError: x\n")
    ncclcheck("explain", str(tmp_path / "a.log"), "--output", str(tmp_path / "r.json"))
    assert "rank-exception" in ncclcheck("report", str(tmp_path / "r.json")).out


def test_wrong_usage() -> None:
    assert refused(ncclcheck("explain")).startswith("explain: which logs?")
    assert "No such file" in refused(ncclcheck("explain", "/no/such/file"))


def test_torch_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("ValueError: x\n")
    program = (
        "import sys\n"
        "from ncclcheck.cli.main import run_command\n"
        f"code = run_command(['explain', {str(tmp_path / 'a.log')!r}])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr


def test_ras_without_anybody_there() -> None:
    with socket.socket() as held:  # ours, and nobody listens there
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        done = ncclcheck("explain", "--ras", f"127.0.0.1:{port}")
    assert done.code == 3
    assert f"no NCCL RAS at 127.0.0.1:{port}: Connection refused" in done.out
    assert "--ras" in refused(ncclcheck("explain", "--ras", "x:", "--format", "json"))
    assert "without files" in refused(ncclcheck("explain", "--ras", "x", "a.log"))
