"""NC709 disk-full."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.host._paths import OPTION, PathPlace, checked_paths, none_given
from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

LEAST_BYTES = 100 << 20
AMPLE_BYTES = 100 << 30
LEAST_SHARE = 0.05
LEAST_INODES = 100


@check("NC709", "disk-full", "The filesystems of the given paths have free space", needs=("paths",))
def disk_full(snapshot: Snapshot) -> Iterator[Answer]:
    """The filesystem of each writable path has free space and free inodes.

    ## Why it matters
    A job that cannot write a checkpoint fails at the first one, hours after its start. A full filesystem also breaks
    the caches and index files that libraries write next to the data.

    ## How to fix
    Remove old checkpoints and caches, or give the job another folder. `df -h PATH` and `df -i PATH` show free space
    and inodes, but not the user's quota.

    ## Source
    statvfs(3), what a user without rights may still write. An error for `--shared-dir` below 100 MiB or 100 files; a
    warning below 5 % when that is less than 100 GiB, and for other paths. Filesystems mounted read-only are full by
    nature and not judged. The limits are ncclcheck's own.
    """
    found = checked_paths(snapshot, "data", "code", "shared", "checkpoint")
    for wanted_path in found:
        for place in wanted_path.places:
            if isinstance(place.fact.kind, Missing):
                yield NotKnown(f"free space on {place.fact.path}: {place.fact.kind}", (place.host,))
            else:
                yield from _judged(place)
    yield from none_given(snapshot, found, "--data, --code, --shared-dir or --checkpoint")
    yield from not_reported(snapshot)


def _judged(place: PathPlace) -> Iterator[Answer]:
    fact = place.fact
    if fact.read_only is True:
        return
    for value in (fact.free_bytes, fact.size_bytes, fact.free_inodes):
        if isinstance(value, Missing):
            yield NotKnown(f"free space on {fact.path}: {value}", (place.host,))
            return
    free, size, inodes = fact.free_bytes, fact.size_bytes, fact.free_inodes
    if isinstance(free, Missing) or isinstance(size, Missing) or isinstance(inodes, Missing) or not size:
        return
    out_of_files = inodes is not None and inodes < LEAST_INODES
    is_full = free < LEAST_BYTES or out_of_files
    if not is_full and (free >= LEAST_SHARE * size or free >= AMPLE_BYTES or fact.purpose != "shared"):
        return
    room = (
        f"{inodes} files can still be created" if out_of_files else f"{_size(free)} of {_size(size)} are free"
    )
    yield Finding(
        "error" if is_full and fact.purpose == "shared" else "warning",
        f"{OPTION[fact.purpose]} {fact.path} is {_state(size, is_full)} on {place.host}: {room}, and a "
        "job that cannot write fails at its first checkpoint",
        (place.host,),
        (
            Evidence(
                (place.host,),
                f"free space on {fact.path}",
                room,
                f"at least {LEAST_SHARE:.0%} or {_size(AMPLE_BYTES)}, and {LEAST_INODES} files",
                "statvfs",
            ),
        ),
        (
            Fix(
                "remove files that are no longer needed, or use another folder",
                (f"df -h {fact.path}; df -i {fact.path}",),
            ),
        ),
    )


def _state(size: int, is_full: bool) -> str:
    if not is_full:
        return "nearly full"
    return "too small" if size < LEAST_BYTES else "full"


def _size(number: int) -> str:
    gib = number / (1 << 30)
    return f"{gib:.1f} GiB" if gib >= 1 else f"{number / (1 << 20):.0f} MiB"
