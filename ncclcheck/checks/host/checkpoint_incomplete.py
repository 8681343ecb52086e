"""NC715 checkpoint-incomplete."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.host._checkpoints import FolderPlace, folders, undecided, unread, words
from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.job.checkpoint_names import ASIDE, is_attempt
from ncclcheck.model.job.checkpoints import Checkpoint
from ncclcheck.model.snapshot import Snapshot

_TRACKER = "latest_checkpointed_iteration.txt"
_MOVED = 20
_SOURCE = "names, sizes, metadata and ends of files"


@check("NC715", "checkpoint-incomplete", "The newest checkpoint is complete", needs=("checkpoints",))
def checkpoint_incomplete(snapshot: Snapshot) -> Iterator[Answer]:
    """Each `--checkpoint` folder has a complete checkpoint, and the one that a job resumes from is complete.

    A folder may hold one checkpoint or many. What a file such as `latest` or a link names is looked into, also where
    that is elsewhere, and the 16 newest; up to 100 where none of them is complete. `last.ckpt` and the like count as
    the newest, then the step in the name decides, then its epoch, then time. A newest one without files is incomplete,
    and one of no known kind is unknown. A folder whose parts lie in folders of their own, such as `optimizer_0` or
    `rank_3.pt`, is one checkpoint.

    ## Why it matters
    A job that was killed while it wrote leaves a checkpoint without some of its files. The next one resumes from it,
    and fails after minutes of loading, or starts from the beginning without a word.

    ## How to fix
    Resume from the newest complete one, which the finding names, and remove the incomplete one or move it away (names
    that begin with `incomplete-` are not looked at). Where a file such as `latest` names the checkpoint, correct it.

    ## Source
    torch.distributed.checkpoint: `.metadata` is written last, and names all files and their least sizes
    (torch/distributed/checkpoint/filesystem.py); one that is older than its shards makes the checkpoint unknown.
    DeepSpeed: `latest`, one file per rank, with ZeRO also of optimizer states (runtime/engine.py). Megatron-LM:
    `latest_checkpointed_iteration.txt`, one folder per rank (megatron/training/checkpointing.py). Beside them:
    DeepSpeed's experts without holes, and a file for each pipeline layer whose parameters the model states name
    (`param_shapes`, saved with ZeRO; without ZeRO a layer missing among those of its size is unknown, and a first or
    last one is not noticed), `distrib_optim.pt`, `common.pt` and `metadata.json` of Megatron-LM, all of
    `-00001-of-00003` and of `world_size_4_rank_0`. `rank_0` does not tell how many there are: a hole in the numbers is
    unknown, and a missing last one is not noticed. A folder `*.ckpt` with shards and without Lightning's `meta.pt` is
    not called complete. The Trainer's folders need weights and, with DeepSpeed, its `latest`. safetensors: the index
    lists all shards and what is in them, and each header has its file's length. torch.save: a zip file has its
    directory at the end; where a file, or a shard of torch.distributed.checkpoint, holds zeros at one of up to 64
    places, or a hole, that record is compared with its checksum; a pickle of an older torch is unknown. A pipe, socket
    or device is no file. `manifest.json` lists all files with their sizes, and `COMPLETE` is written last. Pickles are
    read without running any of them. A zip that cannot be unpacked is damaged; where DeepSpeed's or Megatron-LM's file
    does not tell how many ranks there are, the checkpoint is not called complete. What else the files contain is not
    compared.
    """
    for places in folders(snapshot):
        yield from _judged(places)
    yield from unread(snapshot)
    yield from not_reported(snapshot)


class _Fault(Struct, frozen=True):
    """What is wrong with a folder, reported once for all nodes that see the same."""

    severity: Severity
    text: str
    observed: str
    fix: Fix | None


def _judged(places: tuple[FolderPlace, ...]) -> Iterator[Answer]:
    alike: dict[str, tuple[_Fault, list[str]]] = {}
    for place in places:
        for fault in (*(_of_pointers(place) or _of_newest(place)), *_of_itself(place), *_unnamed(place)):
            alike.setdefault(fault.text, (fault, []))[1].append(place.host)
        yield from undecided(place)
    path = places[0].folder.path
    for fault, hosts in alike.values():
        yield Finding(
            fault.severity,
            f"{named(hosts)}: {fault.text}",
            tuple(hosts),
            (Evidence(tuple(hosts), path, fault.observed, "complete", _SOURCE),),
            () if fault.fix is None else (fault.fix,),
        )


def _of_pointers(place: FolderPlace) -> list[_Fault]:
    """Return what is wrong with the checkpoint that a file or a link names: the job resumes from that one."""
    faults = []
    for pointer in place.folder.pointers:
        named_one = place.named(pointer.names)
        file = f"{place.folder.path}/{pointer.file}"
        if not pointer.names:
            text = f"{file} is empty: a job that resumes finds no checkpoint"
        elif named_one is None and not pointer.is_there:
            text = f"{file} names {pointer.names!r}, which is not there: a job that resumes fails"
        elif named_one is not None and named_one.complete is False:
            lacks = words(named_one)
            text = f"{file} names {pointer.names!r}, which is incomplete ({lacks}): a job that resumes fails"
            text += _instead(place)
        else:
            continue
        observed = f"{pointer.file}: {pointer.names}" if named_one is None else words(named_one)
        faults.append(
            _Fault("error", text, observed, _point_fix(place, pointer.file, is_link=pointer.is_link))
        )
    return faults


def _of_newest(place: FolderPlace) -> list[_Fault]:
    """Return what is wrong with the newest one, from which most jobs resume."""
    path = place.folder.path
    if not place.checkpoints:
        is_empty = not (
            place.folder.pointers or place.folder.unknown or place.folder.older or place.folder.cut
        )
        text = f"--checkpoint {path} holds no checkpoint: the job starts from the beginning"
        return [_Fault("info", text, "empty", None)] if is_empty else []
    newest = place.rivals[0]
    if newest.complete is not False:
        return []
    where = path if newest.name == "." else newest.name if "/" in newest.name else f"{path}/{newest.name}"
    text = f"the checkpoint {where} is incomplete: {words(newest)}{_instead(place)}"
    severity: Severity = "warning" if place.newest_complete else "error"
    return [_Fault(severity, text, words(newest), _remove_fix(place, newest))]


def _of_itself(place: FolderPlace) -> list[_Fault]:
    """Return what is wrong with the checkpoint that the folder is beside those in it, as after a training."""
    folder_itself = next((found for found in place.checkpoints if found.name == "."), None)
    if folder_itself is None or folder_itself in place.rivals or folder_itself.complete is not False:
        return []
    text = f"what lies in {place.folder.path} itself is no complete checkpoint: {words(folder_itself)}"
    return [_Fault("warning", text, words(folder_itself), None)]


def _unnamed(place: FolderPlace) -> list[_Fault]:
    """Return that a file is missing by which the framework finds the checkpoint."""
    best = place.newest_complete
    if best is None or best.name == "." or not best.named_by:
        return []
    if any(pointer.file == best.named_by for pointer in place.folder.pointers):
        return []
    framework = "Megatron-LM" if best.named_by == _TRACKER else "DeepSpeed"
    text = (
        f"{place.folder.path} has no file {best.named_by}: {framework} finds no checkpoint in it and starts from the "
        "beginning, unless the job names one"
    )
    return [_Fault("warning", text, f"no {best.named_by}", _point_fix(place, best.named_by, is_link=False))]


def _instead(place: FolderPlace) -> str:
    best = place.newest_complete
    if best is not None and _is_ordered(place):
        return f"; the newest complete one is {best.name}"
    if best is not None:
        return f"; {best.name} beside it is complete"
    older = place.folder.older
    unseen = f", and {older} older ones were not looked at" if older else ""
    return "; none of those that were looked at is complete" + unseen if len(place.rivals) > 1 else unseen


def _point_fix(place: FolderPlace, file: str, *, is_link: bool) -> Fix:
    best = place.newest_complete
    if best is None:
        return _restore(place)
    name = str(best.step) if file == _TRACKER else best.name
    at = shlex.quote(f"{place.folder.path}/{file}")
    command = f"ln -sfn {shlex.quote(name)} {at}" if is_link else f"echo {shlex.quote(name)} > {at}"
    return Fix(f"resume from {best.name}", (command,))


def _remove_fix(place: FolderPlace, newest: Checkpoint) -> Fix:
    """Return how to resume from another one. Only what is named as a checkpoint of its own is moved, never a part."""
    best = place.newest_complete
    if best is None:
        return _restore(place)
    if not _is_ordered(place):
        return Fix(f"restore it from a copy, or resume from {best.name} if that is a checkpoint of its own")
    torn = [found for found in place.rivals[: place.rivals.index(best)] if found.complete is False]
    if not all(is_attempt(found.name) and found.step is not None for found in (best, newest)):
        return Fix(f"resume from {best.name} by its name")
    path = place.folder.path
    moved = [found.name for found in torn if is_attempt(found.name) and not {"/", "*"} & set(found.name)]
    return Fix(
        f"resume from {best.name}, and move what is incomplete away so that nothing picks it",
        tuple(shlex.join(("mv", f"{path}/{name}", f"{path}/{ASIDE}{name}")) for name in moved[:_MOVED]),
    )


def _is_ordered(place: FolderPlace) -> bool:
    """Return whether a name or a pointer says which checkpoint is the newest; else they may be parts of one."""
    return place.pointer is not None or any(is_attempt(found.name) for found in place.rivals)


def _restore(place: FolderPlace) -> Fix:
    older = place.folder.older
    first = f"look at the {older} older ones, each by --checkpoint; else " if older else ""
    return Fix(f"{first}restore the checkpoint from a copy, or start from the beginning")
