"""Child process: looks at one path and prints each part as soon as it is known, so that what answered is kept."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from pathlib import Path
from statistics import median

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.software.manifest import Listing, Times, read_manifest
from ncclcheck.facts.storage.mounts import mount_at
from ncclcheck.facts.text_files import readable
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing

_STATS = 8
_KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file"}


def main() -> None:
    """Print one JSON object per line, each with some fields of a PathFact."""
    path, purpose, list_s, read_s = (
        os.fsencode(sys.argv[1]),
        sys.argv[2],
        float(sys.argv[3]),
        float(sys.argv[4]),
    )
    began = time.monotonic()
    try:
        status = Path(os.fsdecode(path)).stat()
    except OSError as error:
        _tell(kind=missing_for(error, readable(os.fsdecode(path))))
        return
    _tell(kind=_KINDS.get(stat.S_IFMT(status.st_mode), "other"))
    _tell(**_filesystem(path))
    _tell(stat_ms=_stat_ms(path))
    _tell(listed=_listed(path, stat.S_IFMT(status.st_mode)))
    if purpose == "data":
        _tell_manifest(path, began + list_s, began + read_s)


def _tell(**fields: object) -> None:
    sys.stdout.buffer.write(encode(fields) + b"\n")
    sys.stdout.buffer.flush()


def _filesystem(path: bytes) -> dict[str, object]:
    mount = mount_at(os.path.realpath(os.fsdecode(path)))
    fields: dict[str, object] = {"filesystem": mount, "source": mount}
    if not isinstance(mount, Missing):
        fields = {"filesystem": mount.type, "source": mount.source}
    try:
        room = os.statvfs(path)
    except OSError:
        return fields
    return {
        **fields,
        "read_only": bool(room.f_flag & os.ST_RDONLY),
        "free_bytes": room.f_bavail * room.f_frsize,
        "size_bytes": room.f_blocks * room.f_frsize,
        "free_inodes": room.f_favail if room.f_files else None,
    }


def _stat_ms(path: bytes) -> float:
    times, place = [], Path(os.fsdecode(path))
    for _ in range(_STATS):
        began = time.perf_counter()
        place.stat()
        times.append((time.perf_counter() - began) * 1e3)
    return round(median(times), 4)


def _listed(path: bytes, kind: int) -> bool:
    """Return whether this user may list the folder, or open the file; only a regular file is opened."""
    try:
        if kind == stat.S_IFDIR:
            with os.scandir(path) as entries:
                next(entries, None)
        elif kind == stat.S_IFREG:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        else:
            return os.access(path, os.R_OK)
    except PermissionError:
        return False
    return True


def _tell_manifest(path: bytes, list_until: float, read_until: float) -> None:
    listing = Listing()
    watch = threading.Timer(read_until + timeouts.PATH_HUNG_S - time.monotonic(), _tell_hung, (path, listing))
    watch.daemon = True
    watch.start()
    try:
        manifest, times = read_manifest(path, list_until, read_until, listing)
    except OSError as error:
        _tell(manifest=missing_for(error, readable(os.fsdecode(path))))
        return
    watch.cancel()
    _tell(manifest=manifest, **_medians(times))


def _tell_hung(path: bytes, listing: Listing) -> None:
    """Tell that a call has not come back: listing and reading end by themselves long before."""
    at = readable(os.fsdecode(os.path.join(path, listing.at).rstrip(b"/")))  # noqa: PTH118
    _tell(manifest=Missing("timeout", f"{at} does not answer"))


def _medians(times: Times) -> dict[str, float]:
    times_by_name = {"stat_ms": times.stat_ms, "read_ms": times.read_ms}
    return {name: round(median(values), 4) for name, values in times_by_name.items() if values}
