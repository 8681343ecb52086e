"""DeepSpeed: a file of model states per model-parallel rank, one of optimizer states per rank of both kinds."""

from __future__ import annotations

import re

from ncclcheck.facts.checkpoints.kinds.rule import (
    MOST_NEEDED,
    Lacks,
    Need,
    Rule,
    compared,
    joined,
    number,
    too_many,
    with_unread,
)
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import read_saved

# runtime/engine.py, _get_zero_ckpt_name, _get_ckpt_name, _get_rank_zero_ckpt_name
_OPTIMIZER = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt", re.ASCII)
_MODEL = re.compile(r"(?:zero_pp_rank_\d+_)?mp_rank_(\d+)_model_states\.pt", re.ASCII)
_ZERO_3_MODEL = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt", re.ASCII)


def deepspeed(files: Files) -> Lacks | None:
    """Judge each folder with its files.

    The model states tell `dp_world_size` and `mp_world_size`; without them holes in the numbers still show.
    """
    by_folder: dict[str, list[str]] = {}
    for name in files.sizes:
        folder, _, last = name.rpartition("/")
        if _OPTIMIZER.fullmatch(last) or _MODEL.fullmatch(last):
            by_folder.setdefault(f"{folder}/" if folder else "", []).append(last)
    return joined("deepspeed", (_folder(files, below, names) for below, names in by_folder.items()))


def _folder(files: Files, below: str, names: list[str]) -> Lacks:
    optimizer = [(int(found[1]), int(found[2])) for name in names if (found := _OPTIMIZER.fullmatch(name))]
    model = [int(found[1]) for name in names if (found := _MODEL.fullmatch(name))]
    zero_3 = [(int(found[1]), int(found[2])) for name in names if (found := _ZERO_3_MODEL.fullmatch(name))]
    source = next((f"{below}{name}" for name in sorted(names) if _MODEL.fullmatch(name)), "")
    told = read_saved(files, source) if source else None
    data_ranks = (
        number(told, "dp_world_size") or max((rank for rank, _ in (*optimizer, *zero_3)), default=-1) + 1
    )
    model_ranks = (
        number(told, "mp_world_size") or max((*model, *(rank for _, rank in optimizer)), default=-1) + 1
    )
    if data_ranks * model_ranks > MOST_NEEDED:
        return too_many("deepspeed")
    needs = []
    prefix = next((name[: name.index("zero_")] for name in names if _OPTIMIZER.fullmatch(name)), "")
    for model_rank in range(model_ranks):
        if zero_3:
            needs += [
                f"zero_pp_rank_{rank}_mp_rank_{model_rank:02d}_model_states.pt" for rank in range(data_ranks)
            ]
        else:
            needs.append(f"mp_rank_{model_rank:02d}_model_states.pt")
        if optimizer:
            needs += [
                f"{prefix}zero_pp_rank_{rank}_mp_rank_{model_rank:02d}_optim_states.pt"
                for rank in range(data_ranks)
            ]
    lacks = compared("deepspeed", files, [Need(f"{below}{name}") for name in needs])
    return with_unread(lacks, source, told)


RULES: tuple[Rule, ...] = (deepspeed,)
