"""What the processes of a run tell each other through the store: strict JSON, bounded in size, never pickled.

The orders of the coordinator and the answers to them stand in the file of their step (`run.steps`).
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

import ncclcheck
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.launch import Launch

SCHEMA = "1"
TOOL_VERSION = ncclcheck.__version__
FACTS_LIMIT_BYTES = 4 * 1024 * 1024
LISTING_LIMIT_BYTES = 16 * 1024 * 1024  # 50,000 files with long names
SMALL_LIMIT_BYTES = 256 * 1024
REPORT_LIMIT_BYTES = 512 * 1024 * 1024
T = TypeVar("T")


class MessageVersion(Struct, frozen=True):
    """The one field every message starts with; read alone, so that a newer schema is told from garbage."""

    schema_version: str
    tool_version: str = ""


class Hello(Struct, frozen=True, forbid_unknown_fields=True):
    """A process has come: who its launcher says it is."""

    schema_version: str
    tool_version: str
    host: str
    launch: Launch
    run: str = ""  # a digest of the run's nonce, as it was told it


def read_message(data: bytes, kind: type[T], limit_bytes: int) -> T:
    """Return the message in `data`. Raises DecodeError: too large, another schema version, or not of this shape."""
    if len(data) > limit_bytes:
        raise DecodeError(f"{len(data)} bytes, more than the {limit_bytes} that are accepted")
    version = decode(data, MessageVersion)
    if version.schema_version != SCHEMA:
        raise DecodeError(
            f"schema version {version.schema_version[:40]!r} of ncclcheck {version.tool_version[:40]!r}, "
            f"this one speaks {SCHEMA!r}"
        )
    return decode(data, kind)
