"""The header of a safetensors file: which tensors it holds, and where they end."""

from __future__ import annotations

import struct

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ncclcheck.facts.checkpoints.listing import Files

_LONGEST_HEADER_BYTES = 100_000_000  # safetensors' own limit
_READ_HEADER_BYTES = 32 << 20
_LENGTH_BYTES = 8


class Header(Struct, frozen=True):
    """What was read; `names` is None where the header is longer than what is read of one, or damaged."""

    names: frozenset[str] | None = None
    damage: str = ""


class _Tensor(Struct, frozen=True):
    """Where a tensor lies in a safetensors file; whatever else a header holds is passed over, and costs no memory."""

    data_offsets: tuple[int, int] | UnsetType = UNSET


def header_of(files: Files, name: str) -> Header:
    """Compare the file with the length in its header. Raises OSError.

    huggingface/safetensors, README, Format.
    """
    size = files.sizes[name]
    head, _ = files.ends(name, _LENGTH_BYTES, 0)
    if len(head) < _LENGTH_BYTES:
        return Header(damage=f"was cut off: {size} bytes")
    header_bytes = struct.unpack("<Q", head)[0]
    if header_bytes > _LONGEST_HEADER_BYTES:
        return Header(damage="is no safetensors file")
    if _LENGTH_BYTES + header_bytes > size:
        return Header(damage=f"was cut off in its header: {size} bytes")
    if header_bytes > _READ_HEADER_BYTES:
        return Header()
    text, _ = files.ends(name, _LENGTH_BYTES + header_bytes, 0)
    try:
        header = msgspec.json.decode(text[_LENGTH_BYTES:], type=dict[str, _Tensor])
        ends = {key: _end(entry) for key, entry in header.items() if key != "__metadata__"}
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
        return Header(damage="has a header that cannot be read")
    whole = _LENGTH_BYTES + header_bytes + max(ends.values(), default=0)
    if whole != size:
        return Header(damage=f"has {size} bytes where its header tells {whole}")
    return Header(frozenset(ends))


def _end(tensor: _Tensor) -> int:
    if tensor.data_offsets is UNSET:
        raise ValueError("no offsets")
    return tensor.data_offsets[1]
