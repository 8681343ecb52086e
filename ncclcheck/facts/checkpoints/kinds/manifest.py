"""A folder with `manifest.json`, which lists its files, and the marker `COMPLETE`, which is written last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ncclcheck.facts.checkpoints.kinds.json_files import read_json
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Need, Rule, compared, untold, with_unread
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import Unread

_MANIFEST, _MARKER = "manifest.json", "COMPLETE"
_LIST_FIELDS = ("files", "shards", "entries", "objects")
_NAME_FIELDS = ("name", "path", "file", "filename", "key")
_SIZE_FIELDS = ("size", "bytes", "size_bytes", "length")


def manifest(files: Files) -> Lacks | None:
    """Judge a folder with a manifest: every file of it with its size, and the marker that is written last."""
    if _MANIFEST not in files.sizes and _MARKER not in files.sizes:
        return None
    needs = [Need(_MARKER), Need(_MANIFEST)]
    told = read_json(files, _MANIFEST) if _MANIFEST in files.sizes else {}
    if isinstance(told, Unread):
        return with_unread(Lacks("manifest"), _MANIFEST, told)
    listed = list(_shards(told))
    if _MANIFEST in files.sizes and not listed:
        if _MARKER not in files.sizes:
            return None  # some other program's manifest.json
        return Lacks("manifest", unknown=untold(f"{_MANIFEST} lists no files"))
    return compared("manifest", files, [*needs, *listed])


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


RULES: tuple[Rule, ...] = (manifest,)
