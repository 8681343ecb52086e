"""torch.distributed.checkpoint: `.metadata` is written last, and names all files and where data lies in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from ncclcheck import timeouts
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Need, Rule, compared, joined, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.zip_content import Part, lost_data, search_of
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
        stored = _stored(files, below)
    except DecodeError as error:
        return Lacks("dcp", damaged=(f"{below}{_METADATA}: {error}",))
    if isinstance(stored, Missing):
        return Lacks("dcp", unknown=stored)
    needs = tuple(Need(name, max(end for _, end in parts)) for name, parts in stored.items())
    lacks = compared("dcp", files, needs)
    if lacks.missing or lacks.damaged:
        return lacks
    return Lacks("dcp", damaged=tuple(_lost(files, stored)), unknown=_stale(files, below, needs))


def _lost(files: Files, stored: Mapping[str, list[Part]]) -> Iterator[str]:
    """Yield the files with data that was not written: they hold what torch.save makes of each tensor."""
    search = search_of(files, len(stored))
    for name, parts in stored.items():
        if lost := lost_data(files, name, search, sorted(parts)):
            yield f"{name}: {lost}"


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


def _stored(files: Files, below: str) -> dict[str, list[Part]] | Missing:
    """Return where in each file its tensors and objects lie."""
    data = files.read(f"{below}{_METADATA}", METADATA_BYTES)
    if data is None:
        return unknown_reason(f"{below}{_METADATA} is longer than {METADATA_BYTES >> 20} MiB")
    try:
        metadata = read_records(data, is_late=files.is_late)
    except PickleTooLong as error:
        return Missing("timeout", f"{below}{_METADATA}: {error}")
    places = metadata.field("storage_data") if isinstance(metadata, Record) else None
    if not isinstance(places, dict):
        raise DecodeError("is no metadata of torch.distributed.checkpoint")
    parts: dict[str, list[Part]] = {}
    for place in places.values():
        name, offset, length = (
            (place.field("relative_path"), place.field("offset"), place.field("length"))
            if isinstance(place, Record)
            else (None, None, None)
        )
        if not (isinstance(name, str) and isinstance(offset, int) and isinstance(length, int)):
            raise DecodeError("does not say where its data is")
        parts.setdefault(f"{below}{name}", []).append((offset, offset + length))
    return parts


RULES: tuple[Rule, ...] = (dcp,)
