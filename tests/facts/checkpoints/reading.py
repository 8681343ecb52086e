"""What a test asks of a folder: what a rule says of it, or what is read of it."""

from __future__ import annotations

import time
from pathlib import Path

from ncclcheck.facts.checkpoints.folder import read_folder
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Rule
from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder
from tests.fact_builders import some


def lacks(rule: Rule, path: Path) -> Lacks:
    """What the rule says; it has to say something."""
    found = rule(files_of(path, time.monotonic() + 30))
    assert found is not None
    return found


def why_unknown(rule: Rule, path: Path) -> str:
    """Why the rule cannot tell."""
    unknown = lacks(rule, path).unknown
    assert unknown is not None
    return unknown.detail


def read(path: Path) -> CheckpointFolder:
    """The folder, with time enough."""
    return read_folder(path, time.monotonic() + 30)


def newest(path: Path) -> Checkpoint:
    """The first checkpoint of the folder."""
    return some(read(path).checkpoints)[0]
