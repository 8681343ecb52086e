"""Megatron-LM: a folder `mp_rank_*` per rank, or shards, and what is written beside them."""

from __future__ import annotations

import math
import re

from msgspec.structs import replace

from ncclcheck.facts.checkpoints.kinds.json_files import JSON_BYTES
from ncclcheck.facts.checkpoints.kinds.rule import (
    MOST_NEEDED,
    Lacks,
    Need,
    Rule,
    compared,
    number,
    too_many,
    with_unread,
)
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.pointers import TRACKER
from ncclcheck.facts.checkpoints.torch_zip import read_saved

# megatron/training/checkpointing.py, get_checkpoint_name
_RANK = re.compile(
    r"(?P<folder>mp_rank_(\d{2,})(?:_(\d{3,}))?(?:_(\d{3,}))?/)(?:model_optim_rng|model_rng)\.pt", re.ASCII
)
# get_distributed_optimizer_checkpoint_name. With expert parallelism not every version writes it for each rank.
_WITH_OPTIMIZER = re.compile(r"(?P<folder>mp_rank_\d{2,}(?:_\d{3,})?/)model_optim_rng\.pt", re.ASCII)
_OPTIMIZER = "distrib_optim.pt"
_ITERATION = re.compile(r"iter_\d{7}", re.ASCII)


def megatron(files: Files) -> Lacks | None:
    """Judge its own format: a folder `mp_rank_*` per rank of tensor, pipeline and expert parallelism.

    The arguments in a file tell how many there are; without them holes in the numbers still show.
    """
    found = {name: match for name in files.sizes if (match := _RANK.fullmatch(name))}
    if not found:
        return None
    parts = [tuple(int(part) for part in match.groups()[1:] if part is not None) for match in found.values()]
    source = min(found)
    state = read_saved(files, source)
    arguments = state.get("args") if isinstance(state, dict) else None
    sizes = [
        number(arguments, f"{kind}_model_parallel_size")
        or max(part[place] for part in parts if len(part) > place) + 1
        for place, kind in zip(range(min(map(len, parts))), ("tensor", "pipeline", "expert"), strict=False)
    ]
    if math.prod(sizes) > MOST_NEEDED:
        return too_many("megatron")
    last = next(iter(found)).rpartition("/")[2]
    folders = [f"mp_rank_{rank:02d}" for rank in range(sizes[0])]
    for size in sizes[1:]:
        folders = [f"{folder}_{rank:03d}" for folder in folders for rank in range(size)]
    lacks = compared("megatron", files, [Need(f"{folder}/{last}") for folder in folders])
    return replace(with_unread(lacks, source, state), named_by=TRACKER)


def companions(files: Files) -> Lacks | None:
    """Find what is written beside the weights: the distributed optimizer, and what all ranks share.

    Such names alone make no checkpoint of this kind; a folder that is called as Megatron-LM does makes one.
    """
    missing: list[str] = []
    folders = [found["folder"] for name in files.sizes if (found := _WITH_OPTIMIZER.fullmatch(name))]
    optimizers = [f"{folder}{_OPTIMIZER}" for folder in folders]
    if any(name in files.sizes for name in optimizers):
        missing += [name for name in optimizers if name not in files.sizes]
    # megatron/core/dist_checkpointing: COMMON_STATE_FNAME and CONFIG_FNAME, which is written last
    is_distributed = _is_of_megatron_core(files)
    if is_distributed and "common.pt" not in files.sizes:
        missing.append("common.pt")
    if not is_distributed and {"common.pt", ".metadata"} <= files.sizes.keys():
        missing.append("metadata.json")
    is_own = is_distributed and _ITERATION.fullmatch(files.folder.name) is not None
    if not missing and not is_own:
        return None
    return Lacks("megatron", missing=tuple(sorted(missing)), named_by=TRACKER if is_own else "")


def _is_of_megatron_core(files: Files) -> bool:
    if "metadata.json" not in files.sizes:
        return False
    data = files.read("metadata.json", JSON_BYTES)
    return data is not None and b'"sharded_backend"' in data


RULES: tuple[Rule, ...] = (megatron, companions)
