"""DeepSpeed's files of experts, and of layers of a pipeline: their numbers have no holes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from ncclcheck.facts.checkpoints.kinds.rule import MOST_NEEDED, Lacks, Rule
from ncclcheck.facts.checkpoints.listing import Files

# runtime/engine.py, _get_expert_ckpt_name, _get_optimizer_ckpt_name; runtime/pipe/module.py, ckpt_layer_path
_EXPERT = re.compile(r"(?P<before>.*layer_\d+_expert_)(\d{1,6})_mp_rank_(\d{2,6})_model_states\.pt", re.ASCII)
_EXPERT_OPTIMIZER = re.compile(
    r"(?P<before>.*expp_rank_)(\d{1,6})_mp_rank_(\d{2,6})_optim_states\.pt", re.ASCII
)
_LAYER = re.compile(r"(?P<before>.*layer_\d+-model_)(\d{2,6})-model_states\.pt", re.ASCII)


def parts(files: Files) -> Lacks | None:
    """Find holes. The numbers of layers may have some (what has no parameters is not saved), the others have none."""
    missing = [
        *_holes(files, _EXPERT, "{before}{0}_mp_rank_{1:02d}_model_states.pt"),
        *_holes(files, _EXPERT_OPTIMIZER, "{before}{0}_mp_rank_{1:02d}_optim_states.pt"),
        *_holes(files, _LAYER, "{before}{0:02d}-model_states.pt"),
    ]
    return Lacks("deepspeed", missing=tuple(missing)) if missing else None


def _holes(files: Files, pattern: re.Pattern[str], name: str) -> Iterator[str]:
    """Yield the names that are not there, of each beginning up to the highest numbers that any beginning has."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for file in files.sizes:
        if match := pattern.fullmatch(file):
            numbers = tuple(int(part) for part in match.groups()[1:])
            found.setdefault(match["before"], set()).add(numbers)
    ranks = max((numbers[-1] for seen in found.values() for numbers in seen), default=0) + 1
    for before, seen in found.items():
        sides = (*(range(max(column) + 1) for column in list(zip(*seen, strict=True))[:-1]), range(ranks))
        if _size(sides) <= MOST_NEEDED:
            yield from (
                name.format(*numbers, before=before) for numbers in product(*sides) if numbers not in seen
            )


def _size(sides: Iterable[range]) -> int:
    size = 1
    for side in sides:
        size *= len(side)
    return size


RULES: tuple[Rule, ...] = (parts,)
