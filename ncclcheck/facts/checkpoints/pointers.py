"""Files and links that name the checkpoint a job resumes from."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.text_files import readable
from ncclcheck.model.job.checkpoints import CheckpointPointer

LATEST = "latest"  # DeepSpeed: the name of the folder
TRACKER = "latest_checkpointed_iteration.txt"  # Megatron-LM: the iteration, or "release"
POINTERS = (LATEST, TRACKER, "latest_checkpoint", "last_checkpoint")
_LINKS = ("last", "latest", "current", "best")
_POINTER_BYTES = 4096
_ITERATIONS = ("iter_{:07d}", "global_step_{}")  # Megatron-LM, verl
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)


class Pointed(Struct, frozen=True):
    """A pointer, and the place that it names; None where it names none."""

    pointer: CheckpointPointer
    place: Path | None

    @property
    def name(self) -> str:
        """Return the name of the place: relative to the folder where it is in it, else the whole path."""
        return self.pointer.names


def is_pointing_link(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a link that names a checkpoint."""
    return entry.is_symlink() and entry.name.startswith(_LINKS)


def first_line(file: Path) -> str:
    """Return the first line of a small file. Raises OSError."""
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        text = opened.read(_POINTER_BYTES).decode("utf-8", "surrogateescape").strip("\0 \t\r\n")
    return text.splitlines()[0].strip() if text else ""


def of_file(file: Path) -> Pointed:
    """Return what the file names. Raises OSError."""
    named = first_line(file)
    if file.name == TRACKER and _NUMBER.fullmatch(named):
        forms = [form.format(int(named)) for form in _ITERATIONS]
        named = next((form for form in forms if os.path.exists(file.parent / form)), forms[0])  # noqa: PTH110
    elif "/" in named and not os.path.isabs(named) and not os.path.exists(file.parent / named):  # noqa: PTH110, PTH117
        named = named.rstrip("/").rpartition("/")[
            2
        ]  # relative to where the job was started, as MMEngine writes it
    return _pointed(file, named, is_link=False)


def of_link(link: Path) -> Pointed:
    """Return what the link leads to. Raises OSError."""
    return _pointed(link, os.fspath(link.readlink()), is_link=True)


def _pointed(file: Path, named: str, *, is_link: bool) -> Pointed:
    if not named.strip("/."):
        return Pointed(CheckpointPointer(readable(file.name), "", is_link, is_there=False), None)
    place = Path(os.path.normpath(file.parent / named))
    is_here = place.parent == file.parent or os.path.realpath(place.parent) == os.path.realpath(file.parent)
    is_there = os.path.exists(place)  # noqa: PTH110 (Path.exists raises where a folder may not be entered)
    names = readable(place.name if is_here else str(place))
    pointer = CheckpointPointer(readable(file.name), names, is_link, is_there)
    return Pointed(pointer, place if is_there else None)
