"""JSON files of a checkpoint, read within bounds."""

from __future__ import annotations

from typing import Any

import msgspec

from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.torch_zip import Unread

JSON_BYTES = 64 << 20
MOST_VALUES = (
    4_000_000  # of JSON; 64 MB of empty lists need 2 GB, and an index of 1,000,000 weights has as many names
)


def read_json(files: Files, name: str) -> Any:
    """Return what the file holds; Unread where it is too long, too wide, or no JSON. Raises OSError."""
    data = files.read(name, JSON_BYTES)
    if data is None:
        return Unread(f"it is longer than {JSON_BYTES >> 20} MiB", is_damaged=False)
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return Unread(f"it has more than {MOST_VALUES:,} values", is_damaged=False)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return Unread("cannot be read", is_damaged=True)
