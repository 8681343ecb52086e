"""NC715 checkpoint-incomplete."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.host._checkpoints import FolderPlace, folders, unread, words
from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.job.checkpoints import Checkpoint, CheckpointPointer
from ncclcheck.model.snapshot import Snapshot

_SOURCE = "names, sizes, metadata and ends of files"


@check("NC715", "checkpoint-incomplete", "The newest checkpoint is complete", needs=("checkpoints",))
def checkpoint_incomplete(snapshot: Snapshot) -> Iterator[Answer]:
    """Each `--checkpoint` folder has a complete checkpoint, and the one that a job resumes from is complete.

    A folder may hold one checkpoint or many; the 16 newest (by the step in their names, else by time) are looked into.

    ## Why it matters
    A job that was killed while it wrote leaves a checkpoint without some of its files. The next one resumes from it,
    and fails after minutes of loading, or starts from the beginning without a word.

    ## How to fix
    Resume from the newest complete one, which the finding names, and remove the incomplete one or move it away. Where
    a file such as `latest` names the checkpoint, correct it.

    ## Source
    torch.distributed.checkpoint: `.metadata` is written last, and names all files and their least sizes
    (torch/distributed/checkpoint/filesystem.py). DeepSpeed: `latest`, one file per rank (runtime/engine.py).
    Megatron-LM: `latest_checkpointed_iteration.txt`, one folder per rank (megatron/training/checkpointing.py). Beside
    them: DeepSpeed's experts and pipeline layers without holes (of a single model-parallel rank a missing layer cannot
    be noticed), `distrib_optim.pt`, `common.pt` and `metadata.json` of Megatron-LM, all of `-00001-of-00003` and of
    `world_size_4_rank_0`. A folder `*.ckpt` with shards and without Lightning's `meta.pt` is not called complete.
    safetensors: the index lists all shards, and each header has its file's length. torch.save: a zip file has its
    directory at the end. `manifest.json` lists all files, and `COMPLETE` is written last. Pickles are read without
    running any of them. A zip that cannot be unpacked is damaged; where DeepSpeed's or Megatron-LM's file does not tell
    how many ranks there are, the checkpoint is not called complete. What the files contain is not compared.
    """
    for places in folders(snapshot):
        yield from _judged(places)
    yield from unread(snapshot)
    yield from not_reported(snapshot)


class _Fault(Struct, frozen=True):
    """What is wrong with a folder, told once for all nodes that see the same."""

    severity: Severity
    text: str
    observed: str
    fix: Fix | None


def _judged(places: tuple[FolderPlace, ...]) -> Iterator[Answer]:
    alike: dict[str, tuple[_Fault, list[str]]] = {}
    for place in places:
        for fault in _of_pointers(place) or _of_newest(place):
            alike.setdefault(fault.text, (fault, []))[1].append(place.host)
        yield from _unknown(place)
    path = places[0].folder.path
    for fault, hosts in alike.values():
        yield Finding(
            fault.severity,
            f"{fault.text} (on {named(hosts)})",
            tuple(hosts),
            (Evidence(tuple(hosts), path, fault.observed, "complete", _SOURCE),),
            () if fault.fix is None else (fault.fix,),
        )


def _unknown(place: FolderPlace) -> Iterator[NotKnown]:
    path = place.folder.path
    for found in place.checkpoints[:1]:
        if isinstance(found.complete, Missing):
            yield NotKnown(f"whether {found.name} of {path} is complete: {found.complete}", (place.host,))
    count = place.folder.unknown + place.folder.older
    if count and not place.checkpoints:
        yield NotKnown(
            f"{path}: nothing in it is a checkpoint of a known kind ({count} entries)", (place.host,)
        )


def _of_pointers(place: FolderPlace) -> list[_Fault]:
    """Return what is wrong with the checkpoint that a file or a link names: the job resumes from that one."""
    faults = []
    for pointer in place.folder.pointers:
        named_one = place.named(pointer.names)
        says = f"{place.folder.path}/{pointer.file} names {pointer.names!r}"
        if named_one is None and not pointer.is_there:
            text = f"{says}, which is not there: a job that resumes fails"
            faults.append(
                _Fault("error", text, f"{pointer.file}: {pointer.names}", _point_fix(place, pointer))
            )
        elif named_one is not None and named_one.complete is False:
            text = (
                f"{says}, which is incomplete ({words(named_one)}): a job that resumes fails{_instead(place)}"
            )
            faults.append(_Fault("error", text, words(named_one), _point_fix(place, pointer)))
    return faults


def _of_newest(place: FolderPlace) -> list[_Fault]:
    """Return what is wrong with the newest one, from which most jobs resume."""
    path = place.folder.path
    if not place.checkpoints:
        is_empty = not (place.folder.pointers or place.folder.unknown or place.folder.older)
        text = f"--checkpoint {path} holds no checkpoint: the job starts from the beginning"
        return [_Fault("info", text, "empty", None)] if is_empty else []
    newest = place.checkpoints[0]
    if newest.complete is not False:
        return []
    where = path if newest.name == "." else f"{path}/{newest.name}"
    text = f"the checkpoint {where} is incomplete: {words(newest)}{_instead(place)}"
    severity: Severity = "warning" if place.newest_complete else "error"
    return [_Fault(severity, text, words(newest), _remove_fix(place, newest))]


def _instead(place: FolderPlace) -> str:
    best = place.newest_complete
    if best is not None:
        return f"; the newest complete one is {best.name}"
    return "; none of those that were looked at is complete" if len(place.checkpoints) > 1 else ""


def _point_fix(place: FolderPlace, pointer: CheckpointPointer) -> Fix:
    best = place.newest_complete
    if best is None:
        return Fix("restore the checkpoint from a copy, or start from the beginning")
    name = str(best.step) if pointer.file.startswith("latest_checkpointed_iteration") else best.name
    at = shlex.quote(f"{place.folder.path}/{pointer.file}")
    command = f"ln -sfn {shlex.quote(name)} {at}" if pointer.is_link else f"echo {shlex.quote(name)} > {at}"
    return Fix(f"resume from {best.name}", (command,))


def _remove_fix(place: FolderPlace, newest: Checkpoint) -> Fix:
    best = place.newest_complete
    if best is None:
        return Fix("restore the checkpoint from a copy, or start from the beginning")
    path = place.folder.path
    return Fix(
        f"resume from {best.name}, and move the incomplete one away so that nothing picks it",
        (shlex.join(("mv", f"{path}/{newest.name}", f"{path}/incomplete-{newest.name}")),),
    )
