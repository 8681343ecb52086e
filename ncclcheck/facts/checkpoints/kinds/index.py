"""Sharded weights of Hugging Face: an index names the file of each weight."""

from __future__ import annotations

from ncclcheck.facts.checkpoints.kinds.json_files import read_json
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Need, Rule, compared, joined, untold
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import Unread

_INDEX = (".safetensors.index.json", ".bin.index.json")


def index(files: Files) -> Lacks | None:
    """Judge by all files of the index's `weight_map`."""
    return joined("index", (_shards(files, name) for name in files.sizes if name.endswith(_INDEX)))


def _shards(files: Files, name: str) -> Lacks:
    told = read_json(files, name)
    if isinstance(told, Unread) and not told.is_damaged:
        return Lacks("index", unknown=untold(f"{name}: {told.reason}"))
    below = "" if "/" not in name else name[: name.rindex("/") + 1]
    shards = told.get("weight_map") if isinstance(told, dict) else None
    if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
        return Lacks("index", damaged=(f"{name}: has no weight_map",))
    return compared("index", files, [Need(f"{below}{shard}") for shard in dict.fromkeys(shards.values())])


RULES: tuple[Rule, ...] = (index,)
