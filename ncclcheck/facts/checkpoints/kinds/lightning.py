"""Lightning's sharded checkpoint: a folder `*.ckpt` with shards, and `meta.pt`, which is written after them."""

from __future__ import annotations

from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Rule, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files


def lightning(files: Files) -> Lacks | None:
    """Doubt a folder without `meta.pt`; another program may call its folder so, too.

    lightning/fabric/strategies/fsdp.py, _METADATA_FILENAME.
    """
    is_sharded = files.folder.name.endswith(".ckpt") and ".metadata" in files.sizes
    if not is_sharded or "meta.pt" in files.sizes:
        return None
    return Lacks(
        "dcp", unknown=unknown_reason("a sharded checkpoint of Lightning has meta.pt, which is not there")
    )


RULES: tuple[Rule, ...] = (lightning,)
