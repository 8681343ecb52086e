"""A folder with `manifest.json`, which lists its files, and the marker `COMPLETE`, which is written last."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.checkpoints.kinds.json_files import read_json
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, Need, Rule, compared, unknown_reason, with_unread
from ncclcheck.facts.checkpoints.listing import DEPTH, Files
from ncclcheck.facts.checkpoints.torch_zip import Unread
from ncclcheck.model.fact import Missing

_MANIFEST, _MARKER = "manifest.json", "COMPLETE"
_LIST_FIELDS = ("files", "shards", "entries", "objects")
_NAME_FIELDS = ("name", "path", "file", "filename", "key")
_SIZE_FIELDS = (
    *("size", "bytes", "size_bytes", "length", "nbytes", "num_bytes"),
    *("byte_size", "file_size", "filesize", "content_length"),
)
_COUNT_FIELDS = ("num_shards", "n_shards", "shard_count", "num_files", "n_files", "file_count")
_DEPTH = 8  # of lists in lists


class _Listed(Struct, frozen=True):
    """A file of the manifest, and its size in bytes where it is given."""

    name: str
    size: int | None


def manifest(files: Files) -> Lacks | None:
    """Judge a folder with a manifest: every file of it with its size, and the marker that is written last.

    A marker alone is common, and says nothing of files.
    """
    if _MANIFEST not in files.sizes:
        return None
    content = read_json(files, _MANIFEST)
    if isinstance(content, Unread):
        return with_unread(Lacks("manifest"), _MANIFEST, content)
    listed = list(_listed(files, content))
    if not listed:
        if _MARKER not in files.sizes:
            return None  # some other program's manifest.json
        return Lacks("manifest", unknown=unknown_reason(f"{_MANIFEST} lists no files"))
    needs, outside = _needs(files, listed)
    lacks = compared("manifest", files, [Need(_MARKER), *needs])
    return replace(
        lacks,
        damaged=(*lacks.damaged, *_too_few(content, len(listed))),
        unknown=outside or _fewer_than_ranks(content),
    )


def _listed(files: Files, content: Any) -> Iterator[_Listed]:
    """Yield the files: of all lists that have a known name, else of all names with an ending."""
    if not isinstance(content, dict):
        yield from _files_in(files, content, _DEPTH)
        return
    lists = [content[key] for key in _LIST_FIELDS if isinstance(content.get(key), list | dict)]
    if not lists:
        lists = [
            {name: value for name, value in content.items() if "." in name}
        ]  # `version` and the like are no files
    for found in lists:
        yield from _files_in(files, found, _DEPTH)


def _files_in(files: Files, value: Any, depth: int) -> Iterator[_Listed]:
    """Yield the files of one list: names or records, or records, sizes, checksums or names by name or rank."""
    if isinstance(value, str):
        yield _Listed(value, None)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _files_in(files, inner, depth - 1)
    elif isinstance(value, dict) and depth:
        name = _field(value, _NAME_FIELDS)
        if isinstance(name, str):
            yield _Listed(name, _size(_field(value, _SIZE_FIELDS)))
            return
        for key, inner in value.items():
            yield from _files_of_key(files, key, inner, depth - 1)


def _files_of_key(files: Files, key: str, value: Any, depth: int) -> Iterator[_Listed]:
    is_name = _is_name(files, key)
    if (
        isinstance(value, dict)
        and _field(value, _SIZE_FIELDS) is not None
        and _field(value, _NAME_FIELDS) is None
    ):
        yield _Listed(key, _size(_field(value, _SIZE_FIELDS)))
    elif isinstance(value, list | dict) and value and not is_name:
        yield from _files_in(files, value, depth)
    elif isinstance(value, str) and not is_name and _is_name(files, value):
        yield _Listed(value, None)
    else:
        yield _Listed(key, None if isinstance(value, str) else _size(value))  # text is a checksum


def _is_name(files: Files, text: str) -> bool:
    return text in files.sizes or "." in text or "/" in text


def _size(value: Any) -> int | None:
    """Return a size that is written as a number, or as its digits."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:  # noqa: PLR2004 (a checksum)
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _needs(files: Files, listed: list[_Listed]) -> tuple[list[Need], Missing | None]:
    """Return what has to be there, and why that is not all: names of what is outside are not looked at."""
    folders = {str(parent) for name in files.sizes for parent in PurePosixPath(name).parents}
    root = str(files.folder.absolute())
    needs, outside = [], None
    for file in listed:
        name = _inside(files, root, file.name)
        if name is None:
            outside = unknown_reason(f"{_MANIFEST} lists {file.name}, which is outside and not looked at")
        elif name not in folders or name in files.sizes:
            needs.append(Need(name, file.size or 0, exact=file.size is not None))
    return needs, outside


def _inside(files: Files, root: str, name: str) -> str | None:
    """Return the name relative to the folder, which may have been moved; None where it leads out of it."""
    plain = posixpath.normpath(name)
    if plain.startswith("/"):
        parts = plain.rsplit("/", DEPTH)[1:]
        tails = ("/".join(parts[place:]) for place in range(len(parts)))
        inside = plain.removeprefix(f"{root}/")
        plain = next((tail for tail in tails if tail in files.sizes), ".." if inside == plain else inside)
    return None if plain.startswith("..") else plain


def _too_few(content: Any, listed: int) -> Iterator[str]:
    count = max((size for name in _COUNT_FIELDS if (size := _size(_field(content, (name,))))), default=0)
    if count > listed:
        yield f"{_MANIFEST}: lists {listed} files of the {count} that it tells of"


def _fewer_than_ranks(content: Any) -> Missing | None:
    """Doubt a list of shards that is shorter than the number of ranks; a file of all of them may be meant."""
    ranks, shards = _size(_field(content, ("world_size",))), _field(content, ("shards",))
    if ranks is None or not isinstance(shards, list | dict) or len(shards) >= ranks:
        return None
    return unknown_reason(f"{_MANIFEST} tells of {ranks} ranks, and lists {len(shards)} shards")


def _field(value: Any, names: Iterable[str]) -> Any:
    return next((value[name] for name in names if name in value), None) if isinstance(value, dict) else None


RULES: tuple[Rule, ...] = (manifest,)
