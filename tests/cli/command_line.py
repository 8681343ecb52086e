"""ncclcheck as users start it: a process with arguments, an environment and two streams."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.report import SCHEMA_VERSION, Tool
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster

LAUNCHER_PREFIXES = ("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "NCCL_", "GLOO_", "MASTER_")
LAUNCHER_NAMES = frozenset({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NO_COLOR"})


class Done(Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float


def clean_environment(**extra: str) -> dict[str, str]:
    """This environment without anything of a launcher in it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(LAUNCHER_PREFIXES) and name not in LAUNCHER_NAMES
    }
    return {**kept, **extra}


def ncclcheck(*arguments: str, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> Done:
    """`python -m ncclcheck ARGUMENTS`, which has to end within a minute."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "ncclcheck", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env={**clean_environment(PYTHONPATH=str(Path(__file__).parents[2])), **(environ or {})},
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - started)


def refused(done: Done) -> str:
    """The one sentence of a command that ended with exit code 2; nothing else was said."""
    assert done.code == 2, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.startswith("ncclcheck: error: ")
    assert done.err.count("\n") == 1
    return done.err.removeprefix("ncclcheck: error: ").rstrip("\n")


def saved_run(path: Path, snapshot: Snapshot | None = None) -> str:
    """The name of a file that --from takes, with a healthy cluster in it unless another is given."""
    seen = snapshot or cluster(4)
    seen = replace(seen, expected=replace(seen.expected, on="2026-11-21"))  # as every run notes its day
    saved = Saved(
        schema_version=SCHEMA_VERSION,
        kind="ncclcheck-snapshot",
        tool=Tool("ncclcheck", "0.1.0"),
        command="preflight",
        created="2026-11-21T12:00:00+00:00",
        elapsed_s=2.5,
        interrupted=False,
        snapshot=seen,
    )
    path.write_text(encode_pretty(saved))
    return str(path)
