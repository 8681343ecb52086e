"""Paths that a user gives, on a mount that never answers: one sentence or a finding in time, never a hang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.facts.test_dead_mount import may_mount

pytestmark = [pytest.mark.slow, may_mount]

_MOUNTED = (
    "import sys; from pathlib import Path; from tests.facts.dead_mount import mount_dead; "
    "mount_dead(Path(sys.argv[1])); import subprocess, os; "
    "done = subprocess.run([sys.executable, '-m', 'ncclcheck', *sys.argv[2:]], timeout=55); "
    "os._exit(done.returncode)"
)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["preflight", "--output", "DEAD/report.json"], 2, id="output"),
        pytest.param(["preflight", "--", "DEAD/program"], 2, id="program", marks=pytest.mark.further),
        pytest.param(
            ["preflight", "--", sys.executable, "DEAD/train.py"], 1, id="script", marks=pytest.mark.further
        ),
        pytest.param(["preflight", "--code", "DEAD/code"], 1, id="code", marks=pytest.mark.further),
        pytest.param(["preflight", "--save", "DEAD/saved.json"], 2, id="save", marks=pytest.mark.further),
        pytest.param(["preflight", "--expect", "DEAD/p.toml"], 2, id="expect", marks=pytest.mark.further),
        pytest.param(["bench", "--baseline", "DEAD/old.json"], 2, id="baseline", marks=pytest.mark.further),
        pytest.param(["explain", "DEAD/job.log"], 2, id="explain", marks=pytest.mark.further),
        pytest.param(["facts", "--root", "DEAD/tree"], 2, id="root", marks=pytest.mark.further),
        pytest.param(["report", "DEAD/report.json"], 2, id="report", marks=pytest.mark.further),
    ],
)
def test_a_path_on_a_dead_mount(words: list[str], code: int, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this container may not mount")
    dead = tmp_path / "dead"
    dead.mkdir()
    argv = [word.replace("DEAD", str(dead)) for word in words]
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", _MOUNTED, str(dead), *argv],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        timeout=90,
        check=False,
    )
    assert done.returncode == code, done.stderr
    if code == 1:
        assert "path-missing" in done.stdout
    else:
        assert "hangs" in done.stderr or "cannot be read" in done.stderr


def test_a_home_folder_on_a_dead_mount_ends_with_a_verdict_that_says_what_was_not_read(
    tmp_path: Path,
) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this container may not mount")
    dead = tmp_path / "dead"
    dead.mkdir()
    mounted = _MOUNTED.replace("timeout=55", f"timeout=55, env={{**os.environ, 'HOME': '{dead}'}}")
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", mounted, str(dead), "preflight"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"the home folder {dead} does not answer" in done.stderr
    assert "read_nccl: no answer" in done.stdout  # ~/.nccl.conf
