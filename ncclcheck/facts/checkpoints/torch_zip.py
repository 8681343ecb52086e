"""What torch.save wrote beside the tensors: the pickle in a file's zip, read without running any of it."""

from __future__ import annotations

import zipfile
from typing import Any

from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.model.formats.pickle_records import read_records

_PICKLE_BYTES = 32 << 20


def read_saved(files: Files, name: str) -> Any:
    """Return the object, with records for tensors and objects; None where it cannot be read."""
    try:
        with zipfile.ZipFile(files.folder / name) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith("/data.pkl") and entry.file_size <= _PICKLE_BYTES:
                    with archive.open(entry) as file:
                        return read_records(file.read(_PICKLE_BYTES), is_late=files.is_late)
    except (
        Exception
    ):  # zipfile raises what its decompressors do: zlib.error, MemoryError, RuntimeError, EOFError ...
        return None
    return None
