"""A folder of checkpoints, or one checkpoint: what is in it, the newest first, and what names the one to use."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.checkpoints.file_ends import SAVED, damage_of
from ncclcheck.facts.checkpoints.kinds.all_kinds import all_rules
from ncclcheck.facts.checkpoints.kinds.rule import Lacks
from ncclcheck.facts.checkpoints.listing import Files, files_of, step_of
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointFolder, CheckpointPointer

LOOKED_INTO = 16  # the newest ones: a job resumes from one of them
MOST_ENTRIES = 20_000
_LISTED = 10
_LONGEST_SHOWN = 1000  # of a name and what is wrong with the file; a real one has 4096 bytes at most
_POINTERS = ("latest", "latest_checkpointed_iteration.txt", "latest_checkpoint", "last_checkpoint")
_POINTER_BYTES = 4096
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)
_LINKS = ("last", "latest", "current", "best")
# Names under which frameworks write before they rename: Lightning, Trainer (tmp-checkpoint-N), orbax, and users
_UNFINISHED_ENDS = (".tmp", ".temp", ".part", ".partial", ".incomplete", ".writing")
_UNFINISHED_STARTS = ("tmp-", "tmp_", ".tmp")
_SINGLE_FILES = tuple(end for end in SAVED if end != ".bin")
_BESIDE = (
    "optimizer",
    "scheduler",
    "rng_state",
    "scaler",
    "training_args",
    "random_states",
)  # parts of one checkpoint


class _Candidate(Struct, frozen=True):
    name: str
    step: int | None
    changed_s: float

    @property
    def rank(self) -> tuple[int, float]:
        """The order: by step where the name has one, then by time."""
        return (-1 if self.step is None else self.step, self.changed_s)


def read_folder(path: Path, until: float) -> CheckpointFolder:
    """Return what is there. Ends at `until` (monotonic) but for a call that hangs. Raises OSError."""
    is_folder = S_ISDIR(path.stat().st_mode)
    own = _judged(path, ".", until, beside=True) if is_folder else _judged(path, path.name, until)
    if own is not None:
        return CheckpointFolder(readable(str(path)), (own,))
    candidates, pointers = _entries(path)
    candidates.sort(key=lambda candidate: candidate.rank, reverse=True)
    found: list[Checkpoint] = []
    unknown, looked = 0, 0
    for candidate in candidates:
        if len(found) == LOOKED_INTO or time.monotonic() > until:
            break
        looked += 1
        checkpoint = _judged(path / candidate.name, candidate.name, until)
        if checkpoint is None:
            unknown += 1
        else:
            found.append(checkpoint)
    return CheckpointFolder(
        readable(str(path)), tuple(found), tuple(pointers), len(candidates) - looked, unknown
    )


def _entries(path: Path) -> tuple[list[_Candidate], list[CheckpointPointer]]:
    """Return what may be a checkpoint, and what names one."""
    candidates, pointers = [], []
    with os.scandir(path) as entries:
        for number, entry in enumerate(entries):
            if number >= MOST_ENTRIES:
                break
            if entry.is_symlink() and entry.name.startswith(_LINKS):
                pointers.append(_link(entry))
                continue
            try:
                status = entry.stat()
            except OSError:  # a link that leads nowhere, or in a circle
                continue
            if entry.is_symlink() and step_of(entry.name) is None:
                continue  # to a tokenizer, a log, another folder
            if entry.name in _POINTERS and S_ISREG(status.st_mode):
                pointers += _pointer(path / entry.name)
            elif S_ISDIR(status.st_mode) or _plain(entry.name).endswith(_SINGLE_FILES):
                candidates.append(_Candidate(entry.name, step_of(entry.name), status.st_mtime))
    return candidates, sorted(pointers, key=lambda pointer: pointer.file)


def _link(entry: os.DirEntry[str]) -> CheckpointPointer:
    names = readable(Path(entry.path).readlink().name)
    is_there = os.path.exists(entry.path)  # noqa: PTH110 (Path.exists raises where a folder may not be entered)
    return CheckpointPointer(readable(entry.name), names, is_link=True, is_there=is_there)


def _pointer(file: Path) -> list[CheckpointPointer]:
    """Return what the file names: DeepSpeed writes the folder's name, Megatron-LM the iteration or "release"."""
    with file.open("rb") as opened:
        text = opened.read(_POINTER_BYTES).decode("utf-8", "replace").strip()
    named = text.splitlines()[0].strip().rstrip("/").rpartition("/")[2] if text else ""
    if file.name == "latest_checkpointed_iteration.txt" and _NUMBER.fullmatch(named):
        named = f"iter_{int(named):07d}"
    there = (file.parent / named).exists() if named else False
    return [CheckpointPointer(readable(file.name), readable(named), is_there=there)]


def _judged(place: Path, name: str, until: float, *, beside: bool = False) -> Checkpoint | None:
    """Return the checkpoint; None where it is none of a known kind. `beside`: other checkpoints may lie below it."""
    try:
        files = files_of(place, until)
        if beside:
            own = {name: size for name, size in files.sizes.items() if _is_own(name)}
            files = replace(files, sizes=own)
        lacks = [lack for rule in all_rules() if (lack := rule(files)) is not None]
        if not lacks and beside:
            return None
        if not lacks and not _is_one_file(place, files):
            return None
        return _put_together(name, files, lacks, until)
    except OSError as error:
        why = missing_for(error, readable(name))
        return Checkpoint(readable(name), (), step_of(name), why, 0, 0, 0)


def _is_own(name: str) -> bool:
    """Whether a file below the given folder is part of a checkpoint that this folder itself is."""
    top = name.partition("/")[0]
    return "/" not in name or top.startswith("mp_rank_")


def _is_one_file(place: Path, files: Files) -> bool:
    if len(files.sizes) == 1 and next(iter(files.sizes)) == place.name:
        return True
    return any(_is_saved(name) for name in files.sizes)


def _is_saved(name: str) -> bool:
    last = _plain(name).rpartition("/")[2]
    return last.endswith(SAVED) and not last.startswith(_BESIDE)


def _plain(name: str) -> str:
    """Return the name without the ending under which it is being written."""
    return next((name[: -len(end)] for end in _UNFINISHED_ENDS if name.endswith(end)), name)


def _shown(text: str) -> str:
    """Return what a report holds of a name: a file may name others of any length."""
    return readable(text[:_LONGEST_SHOWN])


def _put_together(name: str, files: Files, lacks: list[Lacks], until: float) -> Checkpoint:
    missing = list(dict.fromkeys(file for lack in lacks for file in lack.missing))
    damaged = list(dict.fromkeys(file for lack in lacks for file in lack.damaged))
    unknown = next((lack.unknown for lack in lacks if lack.unknown), files.cut)
    last = name.rpartition("/")[2]
    if _plain(last) != last or last.startswith(_UNFINISHED_STARTS):
        missing.append(f"the rename of {readable(last)}, which ends the writing")
    told = {line.partition(": ")[0] for line in damaged}
    for file in sorted(files.sizes):
        if not file.endswith(SAVED) or file in told:
            continue
        if time.monotonic() > until:
            unknown = unknown or Missing("timeout", "not all files were looked at in the time for it")
            break
        if wrong := damage_of(files, file):
            damaged.append(f"{file}: {wrong}")
    complete: Fact[bool] = not (missing or damaged)
    if complete and unknown:
        complete = Missing(unknown.missing, _shown(unknown.detail))
    return Checkpoint(
        readable(name),
        tuple(dict.fromkeys(lack.kind for lack in lacks)) or ("file",),
        step_of(name),
        complete,
        len(files.sizes),
        sum(files.sizes.values()),
        files.digest,
        tuple(map(_shown, missing[:_LISTED])),
        len(missing),
        tuple(map(_shown, damaged[:_LISTED])),
        len(damaged),
    )
