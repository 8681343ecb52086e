"""Which filesystem a path is on, by the mounts that this process sees."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.text_files import read_text, readable
from ncclcheck.model.fact import Fact, Missing

_OCTAL = re.compile(r"\\([0-7]{3})", re.ASCII)


class MountPoint(Struct, frozen=True):
    """The type of a filesystem, and what is mounted."""

    type: str
    source: str


def mount_at(path: str) -> Fact[MountPoint]:
    """Return the mount that holds an absolute path without links."""
    text = read_text(Path("/proc/self/mountinfo"))
    return text if isinstance(text, Missing) else mount_in(text, path)


def mount_in(mountinfo: str, path: str) -> Fact[MountPoint]:
    """Return the deepest mount above the path in a mountinfo text, of several the last (proc_pid_mountinfo(5))."""
    best, found = -1, None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        match before.split(" "), after.split(" "):
            case [_, _, _, _, raw, *_], [kind, source, *_]:
                point = _plain(raw)
                covers = path == point or path.startswith(point.rstrip("/") + "/")
                if covers and len(point) >= best:
                    best, found = len(point), MountPoint(kind, _without_user(readable(_plain(source))))
    return found or Missing("absent", f"no mount holds {path}")


def _plain(word: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), word)


def _without_user(source: str) -> str:
    """Return `https://user:password@host/x` without what comes before the host."""
    scheme, mark, rest = source.partition("://")
    if not mark:
        return source
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
