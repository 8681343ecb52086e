"""DeepSpeed's `latest` inside a checkpoint of another framework, which keeps DeepSpeed's folder in its own."""

from __future__ import annotations

from ncclcheck.facts.checkpoints.kinds.deepspeed import folders_of
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Rule, unknown_reason
from ncclcheck.facts.checkpoints.kinds.transformers import STATE
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.pointers import LATEST, first_line


def inner_pointer(files: Files) -> Lacks | None:
    """Find a `latest` that is missing, or names a folder that is not there.

    The Trainer resumes by it (transformers/integrations/deepspeed.py, deepspeed_load_checkpoint); Accelerate names
    the folder itself.
    """
    missing: list[str] = []
    unknown = None
    for inside in sorted(_holders(files)):
        if f"{inside}{LATEST}" not in files.sizes:
            if f"{inside}{STATE}" in files.sizes:
                missing.append(f"{inside}{LATEST}")
            continue
        named = first_line(files.folder / inside / LATEST)
        if not named:
            unknown = unknown_reason(f"{inside}{LATEST} is empty")
        elif not any(name.startswith(f"{inside}{named}/") for name in files.sizes):
            missing.append(f"{inside}{named}/")
    return Lacks("deepspeed", tuple(missing), unknown=unknown) if missing or unknown else None


def _holders(files: Files) -> set[str]:
    """Return the folders with folders of DeepSpeed in them; each is empty or ends with `/`."""
    holders = set()
    for below in folders_of(files):
        if below:
            holder = below.rstrip("/").rpartition("/")[0]
            holders.add(f"{holder}/" if holder else "")
    if {STATE, LATEST} <= files.sizes.keys():
        holders.add("")
    return holders


RULES: tuple[Rule, ...] = (inner_pointer,)
