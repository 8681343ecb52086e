"""A mount whose server is gone is called in 5 s, by its own name, and costs only what is on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
may_mount = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists() or shutil.which("unshare") is None,
    reason="needs root, /dev/fuse and unshare",
)


@pytest.mark.slow
@may_mount
def test_a_dead_mount_and_one_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "data" / "below").mkdir(parents=True)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print()\n")
    told = subprocess.run(
        ["unshare", "-m", sys.executable, "-m", "tests.facts.dead_mount", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "mount" in told.stderr and "PermissionError" in told.stderr:
        pytest.skip("this container may not mount")
    took, stuck, paths, code = json.loads(told.stdout)
    assert stuck == 0
    assert took < 5.6  # 4.5 s, and a moment in which processes die
    dead, above = paths
    assert dead["kind"]["missing"] == "timeout"
    assert above["kind"] == "folder"
    assert above["manifest"] == {"missing": "timeout", "detail": f"{tmp_path}/data/below does not answer"}
    on_dead, alive = code["paths"]
    assert {on_dead[name]["missing"] for name in ("tree_sha256", "git_commit")} == {"timeout"}
    assert isinstance(alive["tree_sha256"], str)
