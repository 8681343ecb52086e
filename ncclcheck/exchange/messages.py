"""What the processes of a run tell each other through the store: strict JSON, bounded in size, never pickled.

The orders of the coordinator and the answers to them stand in the file of their step (`run.steps`).
"""

from __future__ import annotations

import zlib
from typing import TypeVar

from msgspec import Struct

import ncclcheck
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.odd_addresses import refuse_odd_addresses
from ncclcheck.model.launch import Launch

SCHEMA = "1"
TOOL_VERSION = ncclcheck.__version__
FACTS_LIMIT_BYTES = 4 * 1024 * 1024
LISTING_LIMIT_BYTES = 16 * 1024 * 1024  # 50,000 files with long names
SMALL_LIMIT_BYTES = 256 * 1024
OWN_ORDERS = b"own"  # stands in the place of an order: each node finds one of its own, or none
REPORT_LIMIT_BYTES = 512 * 1024 * 1024
_LEAST_PACKED_BYTES = 512
_PACKED, _FAST = b"x", 1  # how zlib's format begins, and JSON does not (RFC 1950); its fastest level
# Of a short message most time goes into clearing zlib's memory (zlib.h, deflateInit2: memLevel), and node 0 packs one
# for each node
_SHORT_BYTES, _LITTLE_MEMORY = 4096, 4
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
    reads: bool = False  # it reads node 0's report in the end: it writes files, or applies the advice
    machine: str = ""  # a digest of its host's addresses, by which nodes of the same name are told apart


def pack(message: object) -> bytes:
    """Return a message as it is sent: strict JSON, compressed where that is worth it."""
    data = encode(message)
    if len(data) < _LEAST_PACKED_BYTES:
        return data
    memory = _LITTLE_MEMORY if len(data) < _SHORT_BYTES else zlib.DEF_MEM_LEVEL
    packing = zlib.compressobj(_FAST, zlib.DEFLATED, zlib.MAX_WBITS, memory)
    return packing.compress(data) + packing.flush()


def unpack(data: bytes, limit_bytes: int, dictionary: bytes = b"") -> bytes:
    """Return the JSON of a message, which need not be compressed. Raises DecodeError: it has more than `limit_bytes`.

    Nothing is decompressed beyond that. `dictionary`: text that sender and receiver have in common (RFC 1950, FDICT).
    """
    if len(data) > limit_bytes:
        raise DecodeError(f"{len(data)} bytes, more than the {limit_bytes} that are accepted")
    if not data.startswith(_PACKED):
        return data
    unpacking = zlib.decompressobj(zdict=dictionary) if dictionary else zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, limit_bytes + 1)
    except zlib.error as error:
        raise DecodeError(f"what was compressed is damaged ({str(error)[:80]})") from error
    if len(plain) > limit_bytes:
        raise DecodeError(f"decompressed more than the {limit_bytes} bytes that are accepted")
    if not unpacking.eof or unpacking.unused_data:
        raise DecodeError("what was compressed is not whole")
    return plain


def read_message(data: bytes, kind: type[T], limit_bytes: int, dictionary: bytes = b"") -> T:
    """Return the message in `data`.

    Raises DecodeError: too large, another schema version, not of this shape, or with an address that is none.
    """
    data = unpack(data, limit_bytes, dictionary)
    version = decode(data, MessageVersion)
    if version.schema_version != SCHEMA:
        raise DecodeError(
            f"schema version {version.schema_version[:40]!r} of ncclcheck {version.tool_version[:40]!r}, "
            f"this one speaks {SCHEMA!r}"
        )
    message = decode(data, kind)
    refuse_odd_addresses(message)
    return message
