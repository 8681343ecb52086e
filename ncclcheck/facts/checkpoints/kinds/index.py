"""Sharded weights of Hugging Face: an index names the file of each weight."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.facts.checkpoints.kinds.json_files import read_json
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Need, Rule, compared, joined, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.safetensors import header_of
from ncclcheck.facts.checkpoints.torch_zip import Unread
from ncclcheck.model.fact import Missing

_SAFE, _BIN = ".safetensors.index.json", ".bin.index.json"


def index(files: Files) -> Lacks | None:
    """Judge by all files of the index's `weight_map`.

    from_pretrained takes the weights in safetensors where there is an index of them: the others are then not needed,
    and whoever downloads one form gets the index of the other one, too.
    """
    lacks = []
    for folder in sorted({name.rpartition("/")[0] for name in files.sizes if name.endswith((_SAFE, _BIN))}):
        indexes = [
            name for name in files.sizes if name.endswith((_SAFE, _BIN)) and name.rpartition("/")[0] == folder
        ]
        safe = [name for name in indexes if name.endswith(_SAFE)]
        lacks += [_shards(files, name) for name in safe or indexes]
    return joined("index", lacks)


def _shards(files: Files, name: str) -> Lacks:
    index = read_json(files, name)
    if isinstance(index, Unread) and not index.is_damaged:
        return Lacks("index", unknown=unknown_reason(f"{name}: {index.reason}"))
    below = "" if "/" not in name else name[: name.rindex("/") + 1]
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
        return Lacks("index", damaged=(f"{name}: has no weight_map",))
    weights: dict[str, set[str]] = {}
    for weight, shard in shards.items():
        weights.setdefault(f"{below}{shard}", set()).add(weight)
    lacks = compared("index", files, map(Need, weights))
    return replace(lacks, damaged=tuple(_without_weights(files, weights)), unknown=_late(files))


def _without_weights(files: Files, weights: dict[str, set[str]]) -> Iterator[str]:
    """Yield the shards without a weight that the index names in them: those of another save."""
    for shard, names in weights.items():
        if shard not in files.sizes or not shard.endswith(".safetensors") or files.is_late():
            continue
        held = header_of(files, shard).names
        if held is not None and (lost := sorted(names - held)):
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            yield f"{shard}: has no tensor {lost[0]}{more}, which the index names in it"


def _late(files: Files) -> Missing | None:
    return Missing("timeout", "not all shards were looked at in the time for it") if files.is_late() else None


RULES: tuple[Rule, ...] = (index,)
