"""torch.distributed.checkpoint: `.metadata` is written last, and names all files and where data lies in them."""

from __future__ import annotations

from pathlib import PurePosixPath

from ncclcheck import timeouts
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Need, Rule, compared, joined, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.pickle_records import Record, read_records
from ncclcheck.model.formats.pickles import PickleTooLong

METADATA_BYTES = 128 << 20
_METADATA = ".metadata"
_UNFINISHED = ".metadata.tmp"  # torch's own name before the rename


def dcp(files: Files) -> Lacks | None:
    """Judge each folder with shards by its metadata.

    torch/distributed/checkpoint/filesystem.py: `_StorageInfo` has relative_path, offset and length.
    """
    folders = {str(PurePosixPath(name).parent) for name in files.sizes if _is_part(name)}
    return joined(
        "dcp", (_folder(files, "" if folder == "." else f"{folder}/") for folder in sorted(folders))
    )


def _is_part(name: str) -> bool:
    return name.endswith(".distcp") or PurePosixPath(name).name in (_METADATA, _UNFINISHED)


def _folder(files: Files, below: str) -> Lacks:
    if f"{below}{_METADATA}" not in files.sizes:
        return Lacks("dcp", missing=(f"{below}{_METADATA}",))
    try:
        needs = _needs(files, below)
    except DecodeError as error:
        return Lacks("dcp", damaged=(f"{below}{_METADATA}: {error}",))
    if isinstance(needs, Missing):
        return Lacks("dcp", unknown=needs)
    lacks = compared("dcp", files, needs)
    return lacks if lacks.missing or lacks.damaged else Lacks("dcp", unknown=_stale(files, below, needs))


def _stale(files: Files, below: str, needs: tuple[Need, ...]) -> Missing | None:
    """Doubt metadata that is older than its shards: it is of a save before, if that wrote into the same folder."""
    newest = max((need.name for need in needs), key=lambda name: files.times_s[name], default="")
    if not newest:
        return None
    later_s = files.times_s[newest] - files.times_s[f"{below}{_METADATA}"]
    if later_s < timeouts.CHECKPOINT_STALE_S:
        return None
    return unknown_reason(
        f"{below}{_METADATA} is {later_s / 60:.0f} minutes older than {newest}, and is written last: a save over this "
        "one was killed, or a copy did not keep the times"
    )


def _needs(files: Files, below: str) -> tuple[Need, ...] | Missing:
    data = files.read(f"{below}{_METADATA}", METADATA_BYTES)
    if data is None:
        return unknown_reason(f"{below}{_METADATA} is longer than {METADATA_BYTES >> 20} MiB")
    try:
        metadata = read_records(data, is_late=files.is_late)
    except PickleTooLong as error:
        return Missing("timeout", f"{below}{_METADATA}: {error}")
    stored = metadata.field("storage_data") if isinstance(metadata, Record) else None
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


RULES: tuple[Rule, ...] = (dcp,)
