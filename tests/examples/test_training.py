"""The training examples train; across nodes they do so in tests/lab/test_prefix.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import clean_environment

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
HAS_FABRIC = any(importlib.util.find_spec(name) for name in ("lightning", "lightning_fabric"))


def ran(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=180,
        env=clean_environment(PYTHONPATH=str(ROOT), GLOO_SOCKET_IFNAME="lo"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def falls(line: str) -> bool:
    """`... loss 0.69 -> 0.36` falls by a third at least."""
    first, last = (float(word) for word in line.rpartition("loss ")[2].split(" -> "))
    return last < first * 2 / 3


@pytest.mark.further
@pytest.mark.slow
def test_plain_torch_behind_the_prefix() -> None:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    prefix = ["-m", "ncclcheck", "preflight", "-q", "--", sys.executable]
    out = ran(*prefix, *torchrun, str(EXAMPLES / "train.py"))
    assert "trained on 2 ranks" in out
    assert falls(out.splitlines()[-1])


@pytest.mark.further
@pytest.mark.slow
@pytest.mark.skipif(not HAS_FABRIC, reason="Lightning Fabric is not installed (pip install lightning-fabric)")
def test_fabric_with_the_check_inside() -> None:
    package = "lightning.fabric" if importlib.util.find_spec("lightning") else "lightning_fabric"
    run = f"from {package}.cli import _main; _main()"
    words = ["run", "--accelerator=cpu", "--strategy=ddp", "--devices=2", str(EXAMPLES / "fabric_train.py")]
    out = ran("-c", run, *words)
    assert "trained on 2 ranks" in out
    assert falls(out.splitlines()[-1])
