"""scripts/nccl_variables tells where the table of variables and NCCL's sources differ."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "nccl_variables"
OLD = 'char* env = getenv("NCCL_COMM_ID");\nNCCL_PARAM(Buffsize, "BUFFSIZE", -2);\n'
NEW = OLD + 'NCCL_PARAM(Fresh, "FRESH_SETTING", 7);\n// NCCL_PARAM(Commented, "COMMENTED", 1);\n'


def git(clone: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(clone), *identity, *words], check=True, capture_output=True, timeout=30)


def released(clone: Path, version: str, source: str) -> None:
    (clone / "src").mkdir(exist_ok=True)
    (clone / "src" / "init.cc").write_text(source)
    git(clone, "add", ".")
    git(clone, "commit", "-q", "--allow-empty", "-m", version)
    git(clone, "tag", f"v{version}-1")


def test_a_new_variable_is_printed_as_an_entry_and_a_lost_one_is_told(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    released(tmp_path, "2.4.2", OLD)
    released(tmp_path, "2.99.1", NEW)
    result = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    lines = result.stdout.splitlines()
    assert result.returncode == 1, result.stderr
    assert (
        'NCCL_FRESH_SETTING = { kind = "number", source = "init.cc", since = "2.99.1", default = "7" }'
        "   # not in the table"
    ) in lines
    assert "NCCL_IB_HCA: in no version from 2.4.2 to 2.99.1" in lines
    assert not [
        line for line in lines if line.startswith(("NCCL_COMM_ID", "NCCL_BUFFSIZE", "NCCL_COMMENTED"))
    ]
