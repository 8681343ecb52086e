"""What lies in a folder of checkpoints: what may be one, in the order in which a job would take them, and pointers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from msgspec import Struct

from ncclcheck.facts.checkpoints.listing import Files, files_of, single_files
from ncclcheck.facts.checkpoints.pointers import POINTERS, Pointed, is_pointing_link, of_file, of_link
from ncclcheck.model.job.checkpoint_names import (
    RANK,
    SAVED,
    finished,
    is_aside,
    is_attempt,
    is_last,
    is_part,
    step_of,
)

MOST_ENTRIES = 1_000_000
_STATE = ("trainer_state.json", "rng_state", "random_states")  # of the Trainer, and of Accelerate
_INDEX_OF_PARTS = "model_index.json"  # of diffusers, which has a folder for each model
_PART_BESIDE_STATE = "global_step"
# A .bin is a checkpoint only with what is beside it
_SINGLE_FILES = tuple(end for end in SAVED if end != ".bin")


class Candidate(Struct, frozen=True):
    """A folder or file that may be a checkpoint, or the files of one (`members`) by their ranks."""

    name: str
    place: Path
    changed_s: float
    members: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[bool, int, float]:
        """The order: what is called last, then by the step or epoch in the name, then by time."""
        step = step_of(self.name)
        return (is_last(self.name), -1 if step is None else step, self.changed_s)

    def files(self, until: float) -> Files:
        """Return its files. Raises OSError."""
        if not self.members:
            return files_of(self.place, until)
        return single_files(self.place, {name: (self.place / name).stat() for name in self.members}, until)


class Entries(Struct, frozen=True):
    """What was listed; `cut`: why that is not all.

    `has_parts`: there are names of parts of a checkpoint; `has_state`: there is state that Hugging Face's libraries
    keep beside DeepSpeed's folder, which is then a part, too.
    """

    candidates: tuple[Candidate, ...]
    pointed: tuple[Pointed, ...]
    folders: frozenset[str]  # the names of all folders in it, and of links to folders
    has_parts: bool
    has_state: bool
    cut: str = ""

    @property
    def attempts(self) -> tuple[Candidate, ...]:
        """Return those whose names say that they are checkpoints of their own."""
        parts = (_PART_BESIDE_STATE,) if self.has_state else ()
        return tuple(
            found for found in self.candidates if is_attempt(found.name) and not found.name.startswith(parts)
        )


def entries_of(path: Path, until: float) -> Entries:
    """List the folder within the time. Raises OSError."""
    candidates: list[Candidate] = []
    pointed: list[Pointed] = []
    folders: set[str] = set()
    has_parts = has_state = False
    cut = ""
    with os.scandir(path) as listing:
        for number, entry in enumerate(listing):
            if number >= MOST_ENTRIES or time.monotonic() > until:
                cut = f"only {number} of its entries were listed in the time for it"
                break
            if is_pointing_link(entry):
                pointed.append(of_link(Path(entry.path)))
            elif entry.name in POINTERS and _is_file(entry):
                pointed.append(of_file(Path(entry.path)))
            elif (candidate := _candidate(path, entry)) is not None:
                candidates.append(candidate)
            if _is_folder(entry):
                folders.add(entry.name)
            has_parts = has_parts or is_part(entry.name) or entry.name == _INDEX_OF_PARTS
            has_state = has_state or entry.name.startswith(_STATE)
    pointed.sort(key=lambda found: found.pointer.file)
    return Entries(
        tuple(_by_rank(path, candidates)), tuple(pointed), frozenset(folders), has_parts, has_state, cut
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return S_ISREG(entry.stat().st_mode)
    except OSError:
        return False


def _candidate(path: Path, entry: os.DirEntry[str]) -> Candidate | None:
    if is_aside(entry.name):
        return None
    is_link = entry.is_symlink()
    if is_link and step_of(entry.name) is None:
        return None  # to a tokenizer, a log, another folder
    if not is_link and not entry.is_dir() and not finished(entry.name).endswith(_SINGLE_FILES):
        return None
    try:
        status = entry.stat()
    except OSError:  # a link that leads nowhere, or in a circle
        return None
    if S_ISDIR(status.st_mode) or finished(entry.name).endswith(_SINGLE_FILES):
        return Candidate(entry.name, path / entry.name, status.st_mtime)
    return None


def _by_rank(path: Path, candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates, with the files of all ranks of one checkpoint as one."""
    alone: list[Candidate] = []
    sets: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found = RANK.fullmatch(candidate.name)
        if found is None or not candidate.name.endswith(SAVED):
            alone.append(candidate)
        else:
            sets.setdefault(f"{found['before']}*{found['after']}", []).append(candidate)
    for name, members in sets.items():
        changed_s = max(member.changed_s for member in members)
        alone.append(Candidate(name, path, changed_s, tuple(sorted(member.name for member in members))))
    return alone
