"""Whether a single file is whole, told by its ends: zip files of torch.save, and safetensors."""

from __future__ import annotations

import struct

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ncclcheck.facts.checkpoints.listing import Files

ZIP = b"PK\x03\x04"
_ZIP_END = (
    b"PK\x05\x06"  # PKWARE APPNOTE 4.3.16: the end of central directory record is the last thing in the file
)
_ZIP_END_BYTES = 22  # without a comment, as torch.save writes it
_ZIP_TAIL_BYTES = _ZIP_END_BYTES + 65_535  # that record with the longest comment
_LONGEST_HEADER_BYTES = 100_000_000  # safetensors' own limit
_READ_HEADER_BYTES = 32 << 20
_LENGTH_BYTES = 8
_LOOKED_AT_BYTES = 4096
SAVED = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")


class _Tensor(Struct, frozen=True):
    """Where a tensor lies in a safetensors file; whatever else a header holds is passed over, and costs no memory."""

    data_offsets: tuple[int, int] | UnsetType = UNSET


def damage_of(files: Files, name: str) -> str:
    """Return what is wrong with the file, told by its size and its ends; empty where nothing is. Raises OSError."""
    size = files.sizes[name]
    if size == 0:
        return "is empty"
    if name.endswith(".safetensors"):
        return _safetensors_damage(files, name, size)
    head, tail = files.ends(name, _LOOKED_AT_BYTES, _ZIP_TAIL_BYTES)
    if head.startswith(ZIP) and _ZIP_END not in tail:
        return f"was cut off: {size} bytes, and the end that torch.save writes is not there"
    if not any(head[: len(ZIP)]) and tail[-_ZIP_END_BYTES:].startswith(_ZIP_END):
        return "begins with zeros, though it ends as a file of torch.save: its beginning was never written"
    if len(head) == _LOOKED_AT_BYTES and not any(head) and not any(tail):
        return "begins with zeros: it was never written"
    return ""


def _safetensors_damage(files: Files, name: str, size: int) -> str:
    """Compare the file with the length that its header tells (huggingface/safetensors, README, Format)."""
    head, _ = files.ends(name, _LENGTH_BYTES, 0)
    if len(head) < _LENGTH_BYTES:
        return f"was cut off: {size} bytes"
    header_bytes = struct.unpack("<Q", head)[0]
    if header_bytes > _LONGEST_HEADER_BYTES:
        return "is no safetensors file"
    if _LENGTH_BYTES + header_bytes > size:
        return f"was cut off in its header: {size} bytes"
    if header_bytes > _READ_HEADER_BYTES:
        return ""
    text, _ = files.ends(name, _LENGTH_BYTES + header_bytes, 0)
    try:
        header = msgspec.json.decode(text[_LENGTH_BYTES:], type=dict[str, _Tensor])
        ends = [_end(entry) for key, entry in header.items() if key != "__metadata__"]
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
        return "has a header that cannot be read"
    whole = _LENGTH_BYTES + header_bytes + max(ends, default=0)
    return "" if whole == size else f"has {size} bytes where its header tells {whole}"


def _end(tensor: _Tensor) -> int:
    if tensor.data_offsets is UNSET:
        raise ValueError("no offsets")
    return tensor.data_offsets[1]
