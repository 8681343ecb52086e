"""The tree that a recording is: bounded while it grows, written as a folder or an archive that names nobody."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Missing
from scripts.recording.redaction import Redaction

MOST_BYTES = 64 << 20
MOST_ENTRIES = 200_000
_FILE_BYTES = 64 << 10
_MTIME = 0  # when it was recorded is nobody's business

Kind: TypeAlias = Literal["file", "link", "folder"]


class Entry(Struct, frozen=True):
    """One thing in the recorded tree: the content of a file, or where a link leads."""

    kind: Kind
    content: bytes = b""


class Recording:
    """The tree so far, bounded; state by design: parts that never end leave what they had."""

    def __init__(self, source: Path, redaction: Redaction) -> None:
        self.here = machine(source)
        self.redaction = redaction
        self.entries: dict[str, Entry] = {}
        self.left_out: list[str] = []
        self._bytes = 0

    def add(self, path: str, kind: Kind, content: bytes = b"") -> None:
        """Put something into the tree; the first at a path stays. Raises OverflowError where the bounds are met."""
        if path in self.entries:
            return
        self._bytes += len(content)
        if self._bytes > MOST_BYTES or len(self.entries) >= MOST_ENTRIES:
            raise OverflowError(f"more than {MOST_ENTRIES} entries or {MOST_BYTES >> 20} MiB")
        self.entries[path] = Entry(kind, content)

    def text(self, place: Folder, name: str, change: Callable[[str], str] | None = None) -> None:
        """Record a file of a folder as text, redacted; nothing where it cannot be read."""
        data = place.data(name, _FILE_BYTES)
        if not isinstance(data, Missing):
            text = (change or self.redaction.text)(data.decode("utf-8", "replace"))
            self.add(self.path(place, name), "file", text.encode())

    def path(self, place: Folder, name: str = "") -> str:
        """Where something of a folder is in the tree."""
        return (place.path / name).relative_to(place.root).as_posix()

    def link(self, place: Folder, name: str) -> None:
        """Record a symbolic link of a folder, made relative, with the folder that it leads to."""
        path, target = place.path / name, place.folder(name)
        if isinstance(target, Missing):
            last = place.link_name(name)  # where it leads to is not there; only its name says something
            if isinstance(last, str):
                self.add(self.path(place, name), "link", f"../{last}".encode())
        elif target.path == path:
            self.add(self.path(place, name), "folder")
        else:
            self.add(self.path(target), "folder")
            self.add(self.path(place, name), "link", os.fsencode(os.path.relpath(target.path, path.parent)))


def write_folder(recording: Recording, out: Path) -> None:
    """Write the tree into the new or empty folder `out`, and nothing outside it. Raises OSError."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty")
    for path, entry in _in_order(recording):
        place = out / path
        place.parent.mkdir(parents=True, exist_ok=True)
        match entry.kind:
            case "folder":
                place.mkdir(exist_ok=True)
            case "link":
                place.symlink_to(os.fsdecode(entry.content))
            case "file":
                place.write_bytes(entry.content)


def write_archive(recording: Recording, out: Path) -> None:
    """Write the tree into the new file `out`, a compressed tar archive without owner and time. Raises OSError."""
    with out.open("xb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for path, entry in _in_order(recording):
            member = tarfile.TarInfo(f"{_stem(out)}/{path}")
            member.mtime, member.mode = _MTIME, 0o755 if entry.kind == "folder" else 0o644
            match entry.kind:
                case "folder":
                    member.type = tarfile.DIRTYPE
                    archive.addfile(member)
                case "link":
                    member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(entry.content)
                    archive.addfile(member)
                case "file":
                    member.size = len(entry.content)
                    archive.addfile(member, io.BytesIO(entry.content))


def _stem(out: Path) -> str:
    return out.name.removesuffix(".tar.gz").removesuffix(".tgz")


def _in_order(recording: Recording) -> list[tuple[str, Entry]]:
    """Folders before what is in them. A part that never ended may still add: what is there now is written."""
    return sorted(dict(recording.entries).items(), key=lambda item: PurePosixPath(item[0]).parts)
