"""DeepSpeed's layers of a pipeline, a file each: the names of the parameters tell which layers there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from ncclcheck.facts.checkpoints.kinds.deepspeed import is_model_states
from ncclcheck.facts.checkpoints.kinds.rule import MOST_NEEDED, Lacks, Rule, joined, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import read_saved
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.pickle_records import Record

# runtime/pipe/module.py, ckpt_layer_path: the part of the model has a number where there is tensor parallelism
_LAYER = re.compile(
    r"(?P<below>(?:.*/)?)layer_(?P<layer>\d{2,6})(?P<after>(?:-model_\d{2,6})?-model_states\.pt)", re.ASCII
)
_PARAMETER = re.compile(r"(\d{1,6})\.", re.ASCII)  # PipelineModule names a layer by its number
_SHAPES = ("param_shapes", "frozen_param_shapes")
_ALIKE = 1.01  # of two sizes of layers that are the same module
_Sizes: TypeAlias = dict[int, int]  # of the files of layers, by the number of the layer
_LEAST_STEPS, _REGULAR = 3, 2 / 3  # distances of layers that are alike, and how many of them are the same


def layers(files: Files) -> Lacks | None:
    """Find layers whose parameters the model states name (`param_shapes`, which ZeRO saves), and that have no file.

    Without such names a layer that is missing among others of its size is doubted: what has no parameters of its own
    has no file either.
    """
    found: dict[str, dict[str, _Sizes]] = {}
    for name, size in files.sizes.items():
        if match := _LAYER.fullmatch(name):
            parts = found.setdefault(match["below"], {})
            parts.setdefault(match["after"], {})[int(match["layer"])] = size
    return joined("deepspeed", (_folder(files, below, parts) for below, parts in sorted(found.items())))


def _folder(files: Files, below: str, parts: dict[str, _Sizes]) -> Lacks:
    """Judge the layers of a folder; `parts`: those of each part of the model, by the end of their names."""
    named = _named(files, below)
    if isinstance(named, Missing):
        return Lacks("deepspeed", unknown=named)
    missing = [
        f"{below}layer_{layer:02d}{after}"
        for after, sizes in parts.items()
        for layer in sorted(named - sizes.keys())
    ]
    doubt = None
    if not named:
        gaps = (
            f"{below}layer_{layer:02d}{after}" for after, sizes in parts.items() for layer in _gaps(sizes)
        )
        gap = next(gaps, None)
        why = f"{gap} is not there, though the layers before and after it are alike and at equal distances"
        doubt = None if gap is None else unknown_reason(why)
    return Lacks("deepspeed", missing=tuple(missing[:MOST_NEEDED]), unknown=doubt)


def _named(files: Files, below: str) -> set[int] | Missing:
    """Return the layers that have parameters; none where no file of model states names any."""
    named: set[int] = set()
    for name in sorted(files.sizes):
        folder, _, last = name.rpartition("/")
        if (f"{folder}/" if folder else "") != below or not is_model_states(last):
            continue
        if files.is_late():
            return Missing("timeout", f"not all model states of {below or 'it'} were read in the time for it")
        named.update(_layers_in(read_saved(files, name)))
    return named


def _layers_in(saved: Any) -> Iterator[int]:
    for key in _SHAPES if isinstance(saved, dict) else ():
        groups = saved.get(key)
        for group in groups if isinstance(groups, list) else [groups]:
            for name in (
                group.items if isinstance(group, Record) else group if isinstance(group, dict) else ()
            ):
                if isinstance(name, str) and (match := _PARAMETER.match(name)):
                    yield int(match[1])


def _gaps(sizes: _Sizes) -> Iterator[int]:
    """Yield the numbers that are missing in a row of layers of one size at equal distances."""
    rest = sorted(sizes.items(), key=lambda item: item[1])
    while rest:
        least = max(1, rest[0][1])
        alike = sorted(layer for layer, size in rest if size <= _ALIKE * least)
        rest = [item for item in rest if item[1] > _ALIKE * least]
        steps = Counter(second - first for first, second in pairwise(alike))
        usual, count = steps.most_common(1)[0] if steps else (0, 0)
        if steps.total() < _LEAST_STEPS or count < _REGULAR * steps.total():
            continue
        for first, second in pairwise(alike):
            if second - first > usual and (second - first) % usual == 0:
                yield from range(first + usual, second, usual)


RULES: tuple[Rule, ...] = (layers,)
