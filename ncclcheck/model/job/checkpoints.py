"""What a node sees in a folder of checkpoints: which are complete, and what the others lack."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.fact import Fact

CheckpointFormat: TypeAlias = Literal[
    "dcp",  # torch.distributed.checkpoint: .metadata and .distcp files
    "deepspeed",
    "megatron",
    "index",  # *.safetensors.index.json or *.bin.index.json, and its shards
    "manifest",  # manifest.json, its files, and a file COMPLETE
    "transformers",  # a folder of the Trainer of Hugging Face
    "file",  # one file by torch.save or safetensors: Lightning's .ckpt, .pt, .pth
]


class Checkpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """One checkpoint. `missing` and `damaged` (with what is wrong) hold the first ten names, and the counts count all.

    `complete` is Missing where it is unknown. `digest` is a CRC-32 over the names and sizes of its files.
    `step` is that of the name, else its epoch. `named_by`: the file beside it by which its framework finds it.
    """

    name: str  # relative to the folder; "." for the folder itself, the whole path where a pointer leads out of it
    formats: tuple[CheckpointFormat, ...]
    step: int | None
    complete: Fact[bool]
    files: int
    size_bytes: int
    digest: int
    missing: tuple[str, ...] = ()
    missing_count: int = 0
    damaged: tuple[str, ...] = ()
    damaged_count: int = 0
    named_by: str = ""


class CheckpointPointer(Struct, frozen=True, forbid_unknown_fields=True):
    """The file (or link) that names the checkpoint a job resumes from, and the name in it; the path if it is elsewhere.

    `is_there`: what it names exists, here or elsewhere.
    """

    file: str
    names: str
    is_link: bool = False
    is_there: bool = True


class CheckpointFolder(Struct, frozen=True, forbid_unknown_fields=True):
    """A `--checkpoint` folder: its newest checkpoints, the newest first.

    `older` counts those that were not looked into, `unknown` the entries that are no checkpoint of a known kind. What a
    pointer names is always looked into. `cut`: why not all entries were listed.
    """

    path: str
    checkpoints: Fact[tuple[Checkpoint, ...]]
    pointers: tuple[CheckpointPointer, ...] = ()
    older: int = 0
    unknown: int = 0
    cut: str = ""
