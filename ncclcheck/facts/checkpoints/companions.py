"""Files that belong to others by their names: parts of a counted set, and what a framework writes beside its shards.

Each rule speaks only where something is missing: such names alone make no checkpoint of a kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from ncclcheck.facts.checkpoints.file_ends import SAVED
from ncclcheck.facts.checkpoints.formats import JSON_BYTES, Lacks, Rule
from ncclcheck.facts.checkpoints.listing import Files

_MOST_PARTS = 200_000  # of one set; a name may tell any number
# Hugging Face: model-00001-of-00003.safetensors, from 1 on; others count from 0
_OF = re.compile(r"(?P<before>.*-)(?P<number>\d{1,9})(?P<after>-of-(?P<count>\d{1,9})\.[^/]*)", re.ASCII)
# verl and others with a file per rank of FSDP: model_world_size_8_rank_0.pt
_RANK = re.compile(
    r"(?P<before>.*world_size_(?P<count>\d{1,9})_rank_)(?P<number>\d{1,9})(?P<after>\.[^/]*)", re.ASCII
)
# DeepSpeed runtime/engine.py, _get_expert_ckpt_name, _get_optimizer_ckpt_name; runtime/pipe/module.py, ckpt_layer_path
_EXPERT = re.compile(r"(?P<before>.*layer_\d+_expert_)(\d{1,6})_mp_rank_(\d{2,6})_model_states\.pt", re.ASCII)
_EXPERT_OPTIMIZER = re.compile(
    r"(?P<before>.*expp_rank_)(\d{1,6})_mp_rank_(\d{2,6})_optim_states\.pt", re.ASCII
)
_LAYER = re.compile(r"(?P<before>.*layer_\d+-model_)(\d{2,6})-model_states\.pt", re.ASCII)
# Megatron-LM megatron/training/checkpointing.py, get_distributed_optimizer_checkpoint_name. With expert parallelism not
# every version writes it for each rank.
_MEGATRON = re.compile(r"(?P<folder>mp_rank_\d{2,}(?:_\d{3,})?/)model_optim_rng\.pt", re.ASCII)
_OPTIMIZER_OF_MEGATRON = "distrib_optim.pt"


def counted(files: Files) -> Lacks | None:
    """Find the missing files of sets whose names tell how many they are."""
    missing = (*_absent(files, _OF), *_absent(files, _RANK))
    return Lacks("file", missing=missing, unknown=files.cut) if missing else None


def _absent(files: Files, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the names that are not there of each set that has a file with `number` of `count` in its name."""
    sets: dict[tuple[str, int, str], list[str]] = {}
    for name in files.sizes:
        if name.endswith(SAVED) and (found := pattern.fullmatch(name)):
            sets.setdefault((found["before"], int(found["count"]), found["after"]), []).append(
                found["number"]
            )
    for (before, count, after), written in sets.items():
        numbers = set(map(int, written))
        if count > _MOST_PARTS or max(numbers) > count:
            continue
        first, width = 0, 1  # ranks
        if pattern is _OF:
            first, width = 0 if 0 in numbers else 1, min(map(len, written))
        for number in range(first, first + count):
            if number not in numbers:
                yield f"{before}{number:0{width}d}{after}"


def deepspeed_parts(files: Files) -> Lacks | None:
    """Find holes among DeepSpeed's files of experts, and of layers of a pipeline.

    The numbers of layers may have holes (what has no parameters is not saved), those of experts and ranks have none.
    """
    missing = [
        *_holes(files, _EXPERT, "{before}{0}_mp_rank_{1:02d}_model_states.pt"),
        *_holes(files, _EXPERT_OPTIMIZER, "{before}{0}_mp_rank_{1:02d}_optim_states.pt"),
        *_holes(files, _LAYER, "{before}{0:02d}-model_states.pt"),
    ]
    return Lacks("deepspeed", missing=tuple(missing), unknown=files.cut) if missing else None


def _holes(files: Files, pattern: re.Pattern[str], name: str) -> Iterator[str]:
    """Yield the names that are not there, of each beginning up to the highest numbers that any beginning has."""
    parts: dict[str, set[tuple[int, ...]]] = {}
    for file in files.sizes:
        if found := pattern.fullmatch(file):
            numbers = tuple(int(part) for part in found.groups()[1:])
            parts.setdefault(found["before"], set()).add(numbers)
    ranks = max((numbers[-1] for seen in parts.values() for numbers in seen), default=0) + 1
    for before, seen in parts.items():
        sides = (*(range(max(column) + 1) for column in list(zip(*seen, strict=True))[:-1]), range(ranks))
        if _size(sides) <= _MOST_PARTS:
            yield from (
                name.format(*numbers, before=before) for numbers in product(*sides) if numbers not in seen
            )


def _size(sides: Iterable[range]) -> int:
    size = 1
    for side in sides:
        size *= len(side)
    return size


def megatron_parts(files: Files) -> Lacks | None:
    """Find what Megatron-LM writes beside the weights: the distributed optimizer, and what all ranks share."""
    missing: list[str] = []
    folders = [found["folder"] for name in files.sizes if (found := _MEGATRON.fullmatch(name))]
    optimizers = [f"{folder}{_OPTIMIZER_OF_MEGATRON}" for folder in folders]
    if any(name in files.sizes for name in optimizers):
        missing += [name for name in optimizers if name not in files.sizes]
    # megatron/core/dist_checkpointing: COMMON_STATE_FNAME and CONFIG_FNAME, which is written last
    is_distributed = _is_of_megatron_core(files)
    if is_distributed and "common.pt" not in files.sizes:
        missing.append("common.pt")
    if not is_distributed and {"common.pt", ".metadata"} <= files.sizes.keys():
        missing.append("metadata.json")
    return Lacks("megatron", missing=tuple(sorted(missing)), unknown=files.cut) if missing else None


def _is_of_megatron_core(files: Files) -> bool:
    if "metadata.json" not in files.sizes:
        return False
    data = files.read("metadata.json", JSON_BYTES)
    return data is not None and b'"sharded_backend"' in data


def lightning_parts(files: Files) -> Lacks | None:
    """Doubt a folder `*.ckpt` with shards and without Lightning's `meta.pt`, which is written after them.

    lightning/fabric/strategies/fsdp.py, _METADATA_FILENAME. Another program may call its folder so, too.
    """
    is_sharded = files.folder.name.endswith(".ckpt") and ".metadata" in files.sizes
    if not is_sharded or "meta.pt" in files.sizes:
        return None
    return Lacks("dcp", unknown="a sharded checkpoint of Lightning has meta.pt, which is not there")


COMPANIONS: tuple[Rule, ...] = (counted, deepspeed_parts, megatron_parts, lightning_parts)
