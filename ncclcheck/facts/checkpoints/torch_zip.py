"""What torch.save wrote beside the tensors: the pickle in a file's zip, read without running any of it."""

from __future__ import annotations

import errno
import zipfile
from contextlib import closing
from typing import Any

from msgspec import Struct

from ncclcheck.facts.checkpoints.file_ends import ZIP, ends_of
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.text_files import readable
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.pickle_records import read_records

_PICKLE_BYTES = 32 << 20
_LONGEST_REASON = 80


class Unread(Struct, frozen=True):
    """Why nothing is known of what a file holds; `is_damaged`: torch.load cannot unpack it either."""

    reason: str
    is_damaged: bool


def read_saved(files: Files, name: str) -> Any:
    """Return the object, with records for tensors and objects; None: no zip; Unread: a zip that cannot be read."""
    try:
        head, _ = files.ends(name, len(ZIP), 0)
        if head != ZIP:  # as torch.save wrote before torch 1.6, or somebody else
            return None
        data = _pickle(files, name)
        return data if isinstance(data, Unread) else read_records(data, is_late=files.is_late)
    except (
        Exception
    ) as error:  # what zipfile and its decompressors raise: BadZipFile, zlib.error, RuntimeError ...
        is_of_disk = isinstance(error, OSError) and error.errno not in (
            None,
            errno.EINVAL,
        )  # else bz2's, or a seek's
        if is_of_disk or isinstance(error, (MemoryError, DecodeError)):
            return Unread(f"what it holds cannot be read ({_short(error)})", is_damaged=False)
        return Unread(ends_of(files, name).damage or f"cannot be unpacked ({_short(error)})", is_damaged=True)


def _pickle(files: Files, name: str) -> bytes | Unread:
    with closing(zipfile.ZipFile(files.folder / name)) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith("/data.pkl"):
                continue
            if entry.file_size > _PICKLE_BYTES:
                return Unread(f"its data.pkl is longer than {_PICKLE_BYTES >> 20} MiB", is_damaged=False)
            with archive.open(entry) as file:
                return file.read(_PICKLE_BYTES)
    return Unread("it has no data.pkl, which torch.save writes", is_damaged=False)


def _short(error: Exception) -> str:
    return readable(str(error) or type(error).__name__)[:_LONGEST_REASON]
