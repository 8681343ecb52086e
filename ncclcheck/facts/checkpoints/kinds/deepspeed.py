"""DeepSpeed: a file of model states per model-parallel rank, one of optimizer states per rank of both kinds."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

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
from ncclcheck.facts.checkpoints.pointers import LATEST
from ncclcheck.facts.checkpoints.torch_zip import read_saved

# runtime/engine.py, _get_zero_ckpt_name, _get_ckpt_name, _get_rank_zero_ckpt_name
_OPTIMIZER = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt", re.ASCII)
_MODEL = re.compile(r"(?:zero_pp_rank_\d+_)?mp_rank_(\d+)_model_states\.pt", re.ASCII)
_ZERO_3_MODEL = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt", re.ASCII)


def deepspeed(files: Files) -> Lacks | None:
    """Judge each folder with its files.

    The model states tell `dp_world_size` and `mp_world_size`; without them holes in the numbers still show.
    """
    found = folders_of(files)
    lacks = joined("deepspeed", (_folder(files, below, names) for below, names in found.items()))
    return replace(lacks, named_by=LATEST) if lacks is not None and "" in found else lacks


def is_model_states(last: str) -> bool:
    """Return whether a file of that name holds the model states of a rank."""
    return _MODEL.fullmatch(last) is not None


def folders_of(files: Files) -> dict[str, list[str]]:
    """Return the names of its files by the folder they are in, which is empty or ends with `/`."""
    by_folder: dict[str, list[str]] = {}
    for name in files.sizes:
        folder, _, last = name.rpartition("/")
        if _OPTIMIZER.fullmatch(last) or _MODEL.fullmatch(last):
            by_folder.setdefault(f"{folder}/" if folder else "", []).append(last)
    return by_folder


def _folder(files: Files, below: str, names: list[str]) -> Lacks:
    optimizer = [(int(found[1]), int(found[2])) for name in names if (found := _OPTIMIZER.fullmatch(name))]
    model = [int(found[1]) for name in names if (found := _MODEL.fullmatch(name))]
    zero_3 = [(int(found[1]), int(found[2])) for name in names if (found := _ZERO_3_MODEL.fullmatch(name))]
    source = next((f"{below}{name}" for name in sorted(names) if _MODEL.fullmatch(name)), "")
    state = read_saved(files, source) if source else None
    data_ranks = (
        number(state, "dp_world_size") or max((rank for rank, _ in (*optimizer, *zero_3)), default=-1) + 1
    )
    model_ranks = (
        number(state, "mp_world_size") or max((*model, *(rank for _, rank in optimizer)), default=-1) + 1
    )
    if data_ranks * model_ranks > MOST_NEEDED:
        return too_many("deepspeed")
    prefix = _optimizer_prefix(names, state)
    needs = []
    for model_rank in range(model_ranks):
        per_rank = [f"zero_pp_rank_{rank}_mp_rank_{model_rank:02d}" for rank in range(data_ranks)]
        needs += (
            [f"{name}_model_states.pt" for name in per_rank]
            if zero_3
            else [f"mp_rank_{model_rank:02d}_model_states.pt"]
        )
        if prefix is not None:
            needs += [f"{prefix}{name}_optim_states.pt" for name in per_rank]
    lacks = compared("deepspeed", files, [Need(f"{below}{name}") for name in needs])
    return with_unread(lacks, source, state)


def _optimizer_prefix(names: list[str], state: Any) -> str | None:
    """Return what the names of ZeRO's optimizer states begin with; None where there are none to be expected."""
    written = next((name for name in names if _OPTIMIZER.fullmatch(name)), "")
    if written:
        return written[: written.index("zero_")]
    if not isinstance(state, dict):
        return None
    config = state.get("ds_config")
    # runtime/engine.py, _save_checkpoint: the shapes are saved if there is an optimizer, and ZeRO shards it
    if not (
        state["param_shapes"]
        if "param_shapes" in state
        else number(_part(config, "zero_optimization"), "stage")
    ):
        return None
    is_bf16 = any(_part(_part(config, name), "enabled") is True for name in ("bf16", "bfloat16"))
    return "bf16_" if is_bf16 else ""


def _part(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else None


RULES: tuple[Rule, ...] = (deepspeed,)
