"""A folder of checkpoints, or one checkpoint: what is in it, the newest first, and what names the one to use."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from pathlib import Path
from stat import S_ISDIR

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.checkpoints.completeness import attempt, judged, rules_say, unreadable
from ncclcheck.facts.checkpoints.entries import Candidate, Entries, entries_of
from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.facts.text_files import readable
from ncclcheck.model.job.checkpoint_names import is_attempt, is_part, shape
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder

LOOKED_INTO = 16  # the newest ones: a job resumes from one of them
MOST_LOOKED_INTO = 100  # where none of the newest ones is complete
_OWN = "."


class _Looked(Struct, frozen=True):
    """What was found; `rest`: how many candidates are no checkpoints, `older`: how many were not looked into.

    `cut`: why newer ones were not looked into.
    """

    found: list[tuple[Candidate, Checkpoint]]
    rest: int
    older: int
    cut: str


def read_folder(path: Path, until: float) -> CheckpointFolder:
    """Return what is there. Ends at `until` (monotonic) but for a call that hangs. Raises OSError."""
    shown = readable(str(path))
    if not S_ISDIR(path.stat().st_mode):
        files = files_of(path, until)
        found = judged(path.name, files) or attempt(path.name, files)
        return CheckpointFolder(shown, (replace(found, name=_OWN),))
    entries = entries_of(path, until)
    folder_itself = _folder_itself(path, entries, until)
    if folder_itself is not None and not entries.attempts:
        return CheckpointFolder(shown, (folder_itself,), cut=entries.cut)
    parts = {
        candidate.name
        for candidate in entries.candidates
        if folder_itself is not None and is_part(candidate.name)
    }
    looked = _look(
        _with_pointed(entries, without=parts), {pointed.name for pointed in entries.pointed}, until
    )
    return CheckpointFolder(
        shown,
        (
            *(checkpoint for _, checkpoint in looked.found),
            *([folder_itself] if folder_itself is not None else []),
        ),
        tuple(pointed.pointer for pointed in entries.pointed),
        looked.older,
        looked.rest,
        entries.cut or looked.cut,
    )


def _folder_itself(path: Path, entries: Entries, until: float) -> Checkpoint | None:
    """Return the checkpoint that the folder itself is: all below it, but for other checkpoints."""
    others = {
        name
        for found in entries.candidates
        if not is_part(found.name)
        for name in found.members or (found.name,)
    }
    others |= {name for name in entries.folders if not is_part(name)}
    try:
        top = files_of(path, until, without=entries.folders | (others if entries.attempts else set()))
        if not rules_say(top) and (entries.attempts or not entries.has_parts):
            return None
        return judged(_OWN, files_of(path, until, without=others if entries.attempts else ()))
    except OSError as error:
        return unreadable(_OWN, missing_for(error, readable(str(path))))


def _with_pointed(entries: Entries, without: Collection[str]) -> list[Candidate]:
    """Return what may be a checkpoint, and what a pointer names beside them."""
    found = {entry.name: entry for entry in entries.candidates if entry.name not in without}
    for pointed in entries.pointed:
        if pointed.place is not None:
            found.setdefault(pointed.name, Candidate(pointed.name, pointed.place, 0.0))
    return list(found.values())


def _look(candidates: Iterable[Candidate], pointed: Collection[str], until: float) -> _Looked:
    """Look into what a pointer names, and the newest ones until one of them is complete."""
    todo = sorted(candidates, key=lambda candidate: (candidate.name in pointed, candidate.rank), reverse=True)
    found: list[tuple[Candidate, Checkpoint]] = []
    undecided: list[tuple[Candidate, Checkpoint]] = []
    looked = 0
    for candidate in todo:
        is_enough = len(found) >= LOOKED_INTO and any(checkpoint.complete is True for _, checkpoint in found)
        if is_enough or len(found) >= MOST_LOOKED_INTO or time.monotonic() > until:
            break
        looked += 1
        try:
            files = candidate.files(until)
            checkpoint = judged(candidate.name, files)
            begun = attempt(candidate.name, files) if checkpoint is None else checkpoint
        except OSError as error:
            checkpoint = begun = unreadable(candidate.name, missing_for(error, readable(candidate.name)))
        is_one = checkpoint is not None or is_attempt(candidate.name) or candidate.name in pointed
        (found if is_one else undecided).append((candidate, begun))
    shapes = {shape(candidate.name) for candidate, _ in found}
    alike = [(candidate, begun) for candidate, begun in undecided if shape(candidate.name) in shapes]
    found = sorted((*found, *alike), key=lambda pair: pair[0].rank, reverse=True)
    unseen = todo[looked:]
    newest = max((candidate.rank for candidate in todo[:looked]), default=None)
    is_cut = any(newest is None or candidate.rank > newest for candidate in unseen)
    cut = f"{len(unseen)} of its entries were not looked into in the time for it" if is_cut else ""
    return _Looked(found, len(undecided) - len(alike), len(unseen), cut)
