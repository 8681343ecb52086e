"""Whether one checkpoint is complete: what all rules say of it, and the ends of its files."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.checkpoints.file_ends import SHARD, ends_of
from ncclcheck.facts.checkpoints.kinds.all_kinds import all_rules
from ncclcheck.facts.checkpoints.kinds.rule import Lacks, unknown_reason
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.checkpoints.zip_content import lost_data, search_of
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.job.checkpoint_names import (
    SAVED,
    finished,
    is_beside_weights,
    is_unfinished,
    step_of,
)
from ncclcheck.model.job.checkpoints import Checkpoint

_LISTED = 10
_LONGEST_SHOWN = 1000  # of a name and what is wrong with the file; a real one has 4096 bytes at most


class _Faults(Struct, frozen=True):
    """What is missing, what is damaged (name: what), and why that is not all."""

    missing: list[str]
    damaged: list[str]
    unknown: Missing | None


def judged(name: str, files: Files) -> Checkpoint | None:
    """Return the checkpoint; None where the files are none of a known kind. Raises OSError."""
    lacks = rules_say(files)
    if not lacks and not _is_saved_alone(files):
        return None
    return _checkpoint(name, files, lacks, _faults(name, files, lacks))


def rules_say(files: Files) -> list[Lacks]:
    """Return what each rule says that knows the files. Raises OSError."""
    return [lacks for rule in all_rules() if (lacks := rule(files)) is not None]


def attempt(name: str, files: Files) -> Checkpoint:
    """Return what was begun under the name of a checkpoint, and is of no known kind: without files it is incomplete."""
    unknown, damaged = files.cut, []
    if not files.sizes and not files.cut:
        damaged.append("it holds no files")
    elif files.sizes:
        unknown = unknown or unknown_reason(f"nothing in it is of a known kind ({len(files.sizes)} files)")
    return replace(_checkpoint(name, files, [], _Faults([], damaged, unknown)), formats=())


def unreadable(name: str, why: Missing) -> Checkpoint:
    """Return a checkpoint that could not be listed or read."""
    return Checkpoint(readable(name), (), step_of(name), why, 0, 0, 0)


def _is_saved_alone(files: Files) -> bool:
    """Return whether there are weights of no kind that has rules: single files, or a folder of them."""
    names = [finished(name) for name in (*files.sizes, *files.foreign)]
    return any(name.endswith(SAVED) and not is_beside_weights(name) for name in names)


def _faults(name: str, files: Files, lacks: list[Lacks]) -> _Faults:
    foreign = {name: kind for name, kind in sorted(files.foreign.items()) if name.endswith((*SAVED, SHARD))}
    missing = list(dict.fromkeys(file for lack in lacks for file in lack.missing if file not in foreign))
    if files.cut:
        missing = []  # they may be among those that were not listed
    damaged = list(dict.fromkeys(file for lack in lacks for file in lack.damaged))
    damaged += [f"{name}: is {kind} in the place of the file" for name, kind in foreign.items()]
    unknown = next((lack.unknown for lack in lacks if lack.unknown), files.cut)
    last = name.rpartition("/")[2]
    if is_unfinished(last):
        missing.append(f"the rename of {readable(last)}, which ends the writing")
    damaged_files = {line.partition(": ")[0] for line in damaged}
    saved = [file for file in sorted(files.sizes) if file.endswith((*SAVED, SHARD))]
    search = search_of(files, len(saved))
    for file in saved:
        if file in damaged_files:
            continue
        if files.is_late():
            unknown = unknown or Missing("timeout", "not all files were looked at in the time for it")
            break
        ends = ends_of(files, file)
        if ends.damage:
            damaged.append(f"{file}: {ends.damage}")
        elif ends.unknown and unknown is None and not (ends.is_foreign and lacks):
            unknown = unknown_reason(f"{file} {ends.unknown}")
        elif ends.is_zip and (lost := lost_data(files, file, search)):
            damaged.append(f"{file}: {lost}")
    return _Faults(missing, damaged, unknown)


def _checkpoint(name: str, files: Files, lacks: list[Lacks], faults: _Faults) -> Checkpoint:
    complete: Fact[bool] = not (faults.missing or faults.damaged)
    if complete and faults.unknown:
        complete = Missing(faults.unknown.missing, _shown(faults.unknown.detail))
    return Checkpoint(
        readable(name),
        tuple(dict.fromkeys(lack.kind for lack in lacks)) or ("file",),
        step_of(name),
        complete,
        len(files.sizes),
        sum(files.sizes.values()),
        files.digest,
        tuple(map(_shown, faults.missing[:_LISTED])),
        len(faults.missing),
        tuple(map(_shown, faults.damaged[:_LISTED])),
        len(faults.damaged),
        named_by=next((lack.named_by for lack in lacks if lack.named_by), ""),
    )


def _shown(text: str) -> str:
    """Return what a report holds of a name: a file may name others of any length."""
    return readable(text[:_LONGEST_SHOWN])
