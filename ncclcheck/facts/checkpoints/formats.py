"""What each kind of checkpoint needs to be complete: one function per kind says what is missing or damaged."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import Unread, read_saved
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.pickle_records import Record, read_records
from ncclcheck.model.formats.pickles import PickleTooLong
from ncclcheck.model.job.checkpoints import CheckpointFormat

JSON_BYTES = 64 << 20
METADATA_BYTES = 128 << 20
MOST_VALUES = (
    4_000_000  # of JSON; 64 MB of empty lists need 2 GB, and an index of 1,000,000 weights has as many names
)
_MOST_RANKS = 1_000_000
_MOST_NEEDED = 200_000  # files of one checkpoint; a name or a saved number may tell any
_DCP_METADATA = ".metadata"
_MANIFEST, _MARKER = "manifest.json", "COMPLETE"
_LIST_FIELDS = ("files", "shards", "entries", "objects")
_NAME_FIELDS = ("name", "path", "file", "filename", "key")
_SIZE_FIELDS = ("size", "bytes", "size_bytes", "length")
_INDEX = (".safetensors.index.json", ".bin.index.json")
# DeepSpeed runtime/engine.py, _get_zero_ckpt_name, _get_ckpt_name, _get_rank_zero_ckpt_name
_OPTIMIZER = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt", re.ASCII)
_MODEL = re.compile(r"(?:zero_pp_rank_\d+_)?mp_rank_(\d+)_model_states\.pt", re.ASCII)
_ZERO_3_MODEL = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt", re.ASCII)
# Megatron-LM megatron/training/checkpointing.py, get_checkpoint_name
_MEGATRON = re.compile(
    r"mp_rank_(\d{2,})(?:_(\d{3,}))?(?:_(\d{3,}))?/(?:model_optim_rng|model_rng)\.pt", re.ASCII
)
_RNG = re.compile(r"rng_state_(\d+)\.pth", re.ASCII)


class Need(Struct, frozen=True):
    """A file that a checkpoint needs, and its least size in bytes; `exact`: it has to be just that."""

    name: str
    least_bytes: int = 0
    exact: bool = False


class Lacks(Struct, frozen=True):
    """What a kind's rules say: the names that are missing, what is damaged (name: what), and why that is not all."""

    kind: CheckpointFormat
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    unknown: str = ""


Rule: TypeAlias = Callable[[Files], Lacks | None]


def dcp(files: Files) -> Lacks | None:
    """Judge torch.distributed.checkpoint: `.metadata` is written last, and names all files and where data lies in them.

    torch/distributed/checkpoint/filesystem.py: `_StorageInfo` has relative_path, offset and length.
    """
    lacks: list[Lacks] = []
    for folder in {str(PurePosixPath(name).parent) for name in files.sizes if _is_dcp(name)}:
        below = "" if folder == "." else f"{folder}/"
        if f"{below}{_DCP_METADATA}" not in files.sizes:
            lacks.append(Lacks("dcp", missing=(f"{below}{_DCP_METADATA}",)))
            continue
        try:
            needs = _dcp_needs(files, below)
        except DecodeError as error:
            lacks.append(Lacks("dcp", damaged=(f"{below}{_DCP_METADATA}: {error}",)))
            continue
        if isinstance(needs, str):
            lacks.append(Lacks("dcp", unknown=needs))
        else:
            lacks.append(_compared("dcp", files, needs))
    return _joined("dcp", lacks)


def _is_dcp(name: str) -> bool:
    return name.endswith(".distcp") or PurePosixPath(name).name == _DCP_METADATA


def _dcp_needs(files: Files, below: str) -> tuple[Need, ...] | str:
    data = files.read(f"{below}{_DCP_METADATA}", METADATA_BYTES)
    if data is None:
        return f"{below}{_DCP_METADATA} is longer than {METADATA_BYTES >> 20} MiB"
    try:
        told = read_records(data, is_late=files.is_late)
    except PickleTooLong as error:
        return f"{below}{_DCP_METADATA}: {error}"
    stored = told.field("storage_data") if isinstance(told, Record) else None
    if not isinstance(stored, dict):
        raise DecodeError("is no metadata of torch.distributed.checkpoint")
    least: dict[str, int] = {}
    for place in stored.values():
        name, offset, length = (
            (place.field("relative_path"), place.field("offset"), place.field("length"))
            if isinstance(place, Record)
            else (None, None, None)
        )
        if not (isinstance(name, str) and isinstance(offset, int) and isinstance(length, int)):
            raise DecodeError("does not say where its data is")
        least[name] = max(least.get(name, 0), offset + length)
    return tuple(Need(f"{below}{name}", size) for name, size in least.items())


def index(files: Files) -> Lacks | None:
    """Judge sharded weights of Hugging Face: all files of the index's `weight_map`."""
    lacks = []
    for name in files.sizes:
        if name.endswith(_INDEX):
            lacks.append(_shards_of_index(files, name))
    return _joined("index", lacks)


def _shards_of_index(files: Files, name: str) -> Lacks:
    told = _json(files, name)
    if isinstance(told, Unread) and not told.is_damaged:
        return Lacks("index", unknown=f"{name}: {told.reason}")
    below = "" if "/" not in name else name[: name.rindex("/") + 1]
    shards = told.get("weight_map") if isinstance(told, dict) else None
    if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
        return Lacks("index", damaged=(f"{name}: has no weight_map",))
    return _compared("index", files, [Need(f"{below}{shard}") for shard in dict.fromkeys(shards.values())])


def manifest(files: Files) -> Lacks | None:
    """Judge a folder with a manifest: every file of it with its size, and the marker that is written last."""
    if _MANIFEST not in files.sizes and _MARKER not in files.sizes:
        return None
    needs = [Need(_MARKER), Need(_MANIFEST)]
    told = _json(files, _MANIFEST) if _MANIFEST in files.sizes else {}
    if isinstance(told, Unread):
        return _with_unread(Lacks("manifest"), _MANIFEST, told)
    listed = list(_shards(told))
    if _MANIFEST in files.sizes and not listed:
        if _MARKER not in files.sizes:
            return None  # some other program's manifest.json
        return Lacks("manifest", unknown=f"{_MANIFEST} lists no files")
    return _compared("manifest", files, [*needs, *listed])


def _shards(told: Any) -> Iterator[Need]:
    """Yield the files of a manifest: a list of names or records, or records or sizes by name."""
    listed = (
        next((told[key] for key in _LIST_FIELDS if key in told), None) if isinstance(told, dict) else told
    )
    if listed is None:
        listed = {
            name: value for name, value in told.items() if "." in name
        }  # `version` and the like are no files
    if isinstance(listed, dict):
        yield from (_need(name, value) for name, value in listed.items() if isinstance(value, int | dict))
    elif isinstance(listed, list):
        records = ((_field(value, _NAME_FIELDS) or value, value) for value in listed)
        yield from (_need(name, value) for name, value in records if isinstance(name, str))


def _need(name: str, told: Any) -> Need:
    size = told if isinstance(told, int) else _field(told, _SIZE_FIELDS)
    is_size = isinstance(size, int) and not isinstance(size, bool)
    return Need(name, size if is_size else 0, exact=is_size)


def _field(value: Any, names: Iterable[str]) -> Any:
    return next((value[name] for name in names if name in value), None) if isinstance(value, dict) else None


def deepspeed(files: Files) -> Lacks | None:
    """Judge DeepSpeed: a file of model states per model-parallel rank, one of optimizer states per rank of both kinds.

    The model states tell `dp_world_size` and `mp_world_size`; without them holes in the numbers still show.
    """
    by_folder: dict[str, list[str]] = {}
    for name in files.sizes:
        folder, _, last = name.rpartition("/")
        if _OPTIMIZER.fullmatch(last) or _MODEL.fullmatch(last):
            by_folder.setdefault(f"{folder}/" if folder else "", []).append(last)
    return _joined(
        "deepspeed", [_deepspeed_folder(files, below, names) for below, names in by_folder.items()]
    )


def _deepspeed_folder(files: Files, below: str, names: list[str]) -> Lacks:
    optimizer = [(int(found[1]), int(found[2])) for name in names if (found := _OPTIMIZER.fullmatch(name))]
    model = [int(found[1]) for name in names if (found := _MODEL.fullmatch(name))]
    zero_3 = [(int(found[1]), int(found[2])) for name in names if (found := _ZERO_3_MODEL.fullmatch(name))]
    source = next((f"{below}{name}" for name in sorted(names) if _MODEL.fullmatch(name)), "")
    told = read_saved(files, source) if source else None
    data_ranks = (
        _number(told, "dp_world_size") or max((rank for rank, _ in (*optimizer, *zero_3)), default=-1) + 1
    )
    model_ranks = (
        _number(told, "mp_world_size") or max((*model, *(rank for _, rank in optimizer)), default=-1) + 1
    )
    if data_ranks * model_ranks > _MOST_NEEDED:
        return _too_many("deepspeed")
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
    lacks = _compared("deepspeed", files, [Need(f"{below}{name}") for name in needs])
    return _with_unread(lacks, source, told)


def megatron(files: Files) -> Lacks | None:
    """Judge Megatron-LM's own format: a folder `mp_rank_*` per rank of tensor, pipeline and expert parallelism.

    The arguments in a file tell how many there are; without them holes in the numbers still show.
    """
    found = {name: match for name in files.sizes if (match := _MEGATRON.fullmatch(name))}
    if not found:
        return None
    parts = [tuple(int(part) for part in match.groups() if part is not None) for match in found.values()]
    source = min(found)
    told = read_saved(files, source)
    arguments = told.get("args") if isinstance(told, dict) else None
    sizes = [
        _number(arguments, f"{kind}_model_parallel_size")
        or max(part[place] for part in parts if len(part) > place) + 1
        for place, kind in zip(range(min(map(len, parts))), ("tensor", "pipeline", "expert"), strict=False)
    ]
    if math.prod(sizes) > _MOST_NEEDED:
        return _too_many("megatron")
    last = next(iter(found)).rpartition("/")[2]
    folders = [f"mp_rank_{rank:02d}" for rank in range(sizes[0])]
    for size in sizes[1:]:
        folders = [f"{folder}_{rank:03d}" for folder in folders for rank in range(size)]
    lacks = _compared("megatron", files, [Need(f"{folder}/{last}") for folder in folders])
    return _with_unread(lacks, source, told)


def transformers(files: Files) -> Lacks | None:
    """Judge a folder of Hugging Face's Trainer: its state, which is written after the weights, and every rank's RNG."""
    if "trainer_state.json" not in files.sizes and not any(map(_RNG.fullmatch, files.sizes)):
        return None  # weights alone, as save_model writes them
    needs = [Need("trainer_state.json")]
    ranks = [int(found[1]) for name in files.sizes if (found := _RNG.fullmatch(name))]
    if max(ranks, default=0) >= _MOST_NEEDED:
        return _too_many("transformers")
    needs += [Need(f"rng_state_{rank}.pth") for rank in range(max(ranks, default=-1) + 1)]
    return _compared("transformers", files, needs)


RULES: tuple[Rule, ...] = (dcp, deepspeed, megatron, index, manifest, transformers)


def _too_many(kind: CheckpointFormat) -> Lacks:
    why = f"its names, or what is saved in it, tell of more than {_MOST_NEEDED:,} files: they are not looked for"
    return Lacks(kind, unknown=why)


def _with_unread(lacks: Lacks, source: str, told: Any) -> Lacks:
    """Add why the file that tells how many ranks there are does not: names alone do not make a checkpoint complete."""
    if not isinstance(told, Unread):
        return lacks
    line = f"{source}: {told.reason}"
    if told.is_damaged:
        return replace(lacks, damaged=(*lacks.damaged, line))
    return replace(lacks, unknown=lacks.unknown or line)


def _compared(kind: CheckpointFormat, files: Files, needs: Iterable[Need]) -> Lacks:
    missing, damaged = [], []
    for need in needs:
        size = files.sizes.get(need.name)
        if size is None:
            missing.append(need.name)
        elif size < need.least_bytes or (need.exact and size != need.least_bytes):
            damaged.append(f"{need.name}: {size} bytes, {need.least_bytes} were recorded")
    return Lacks(kind, tuple(sorted(missing)), tuple(damaged), files.cut if missing else "")


def _joined(kind: CheckpointFormat, lacks: list[Lacks]) -> Lacks | None:
    if not lacks:
        return None
    return Lacks(
        kind,
        tuple(name for lack in lacks for name in lack.missing),
        tuple(name for lack in lacks for name in lack.damaged),
        next((lack.unknown for lack in lacks if lack.unknown), ""),
    )


def _json(files: Files, name: str) -> Any:
    data = files.read(name, JSON_BYTES)
    if data is None:
        return Unread(f"it is longer than {JSON_BYTES >> 20} MiB", is_damaged=False)
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return Unread(f"it has more than {MOST_VALUES:,} values", is_damaged=False)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return Unread("cannot be read", is_damaged=True)


def _number(told: Any, name: str) -> int:
    """Return a number that the saved object tells, of a dictionary or of an object's state; 0 where it does not."""
    value = (
        told.get(name) if isinstance(told, dict) else told.field(name) if isinstance(told, Record) else None
    )
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_RANKS else 0
