"""Whether a single file is whole, judged by its ends: zip files and pickles of torch.save, and safetensors."""

from __future__ import annotations

import re
import struct

from msgspec import Struct

from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.safetensors import header_of
from ncclcheck.model.job.checkpoint_names import is_beside_weights

ZIP = b"PK\x03\x04"
SHARD = ".distcp"
# PKWARE APPNOTE 4.3.14 to 4.3.16: the end of central directory record is the last thing in the file
_ZIP_END, _ZIP64_END, _ZIP64_LOCATOR = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ZIP_END_BYTES = 22  # without a comment, as torch.save writes it
_ZIP64_END_BYTES, _ZIP64_LOCATOR_BYTES = 56, 20
_ZIP_TAIL_BYTES = _ZIP_END_BYTES + 65_535  # that record with the longest comment
_IN_ZIP64 = 0xFFFFFFFF
_LOOKED_AT_BYTES = 4096
_PICKLE = b"\x80"
_STOP = b"."
# torch/serialization.py, MAGIC_NUMBER: what torch.save wrote before torch 1.6, and DeepSpeed's fast writer writes
_LEGACY = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LFS = b"version https://git-lfs.github.com/spec"
_MARKUP = re.compile(rb"\s*<(?:!doctype|html|\?xml|head|body)", re.IGNORECASE)
# Any program may call a file of its own .bin or .ckpt
_TORCH_BIN = re.compile(r"(?:diffusion_)?(?:pytorch_model|adapter_model)[^/]*\.bin", re.ASCII)


class Ends(Struct, frozen=True):
    """What is wrong with a file, or why its ends do not tell; both empty where they tell that it is whole.

    `is_foreign`: other programs call files of their own so, and those say nothing of a checkpoint of a known kind.
    """

    damage: str = ""
    unknown: str = ""
    is_foreign: bool = False
    is_zip: bool = False


def ends_of(files: Files, name: str) -> Ends:
    """Return what the file's size and its ends tell. Raises OSError."""
    if files.sizes[name] == 0:
        return Ends("is empty")
    head, tail = files.ends(name, _LOOKED_AT_BYTES, _ZIP_TAIL_BYTES)
    if head.startswith(_LFS):
        return Ends("is a pointer of git-lfs in the place of the file (git lfs pull fetches it)")
    if len(head) == _LOOKED_AT_BYTES and not any(head) and not any(tail):
        return Ends("begins with zeros: it was never written")
    if name.endswith(SHARD):
        return Ends()  # its metadata holds its size
    if name.endswith(".safetensors"):
        return Ends(header_of(files, name).damage)
    if head.startswith(ZIP):
        return Ends(_zip_damage(files.sizes[name], tail), is_zip=True)
    if not any(head[: len(ZIP)]) and tail[-_ZIP_END_BYTES:].startswith(_ZIP_END):
        return Ends(
            "begins with zeros, though it ends as a file of torch.save: its beginning was never written"
        )
    return _of_no_zip(name, head, tail)


def _of_no_zip(name: str, head: bytes, tail: bytes) -> Ends:
    if _MARKUP.match(head):
        return Ends("is a web page or XML in the place of the file")
    if head.startswith(_PICKLE):
        is_single = _LEGACY not in head and tail.endswith(_STOP)
        return (
            Ends()
            if is_single
            else Ends(unknown="is a pickle, not a zip: nothing in it tells whether it is whole")
        )
    if name.endswith(".ckpt") or (name.endswith(".bin") and not _is_of_torch(name)):
        return Ends(
            unknown="is neither a zip nor a pickle: whether it is whole is not known", is_foreign=True
        )
    return Ends("is neither a zip nor a pickle, as torch.save writes: torch.load fails")


def _is_of_torch(name: str) -> bool:
    return _TORCH_BIN.fullmatch(name.rpartition("/")[2]) is not None or is_beside_weights(name)


def _zip_damage(size: int, tail: bytes) -> str:
    """Return what is wrong with a zip: it ends with its directory, and that is where its end says."""
    place = tail.rfind(_ZIP_END)
    if place < 0 or len(tail) - place < _ZIP_END_BYTES:
        return f"was cut off: {size} bytes, and the end that torch.save writes is not there"
    directory_bytes, offset = struct.unpack("<LL", tail[place + 12 : place + 20])
    locator = place - _ZIP64_LOCATOR_BYTES
    if locator >= 0 and tail[locator:].startswith(_ZIP64_LOCATOR):
        record = locator - _ZIP64_END_BYTES
        if record < 0 or not tail[record:].startswith(_ZIP64_END):
            return ""  # of another writer: its record has another length
        directory_bytes, offset = struct.unpack("<QQ", tail[record + 40 : record + 56])
        place = record
    elif _IN_ZIP64 in (directory_bytes, offset):
        return ""
    lost = offset + directory_bytes - (size - len(tail) + place)
    if lost > 0:
        return f"lacks {lost} bytes in its middle: its directory is not where its end says"
    return f"has {-lost} bytes too many: its directory is not where its end says" if lost else ""
