"""Copies a recorded tree with symbolic links where the recording has files that hold the target of one."""

from __future__ import annotations

import shutil
from pathlib import Path

_LONGEST = 4096


def with_links(tree: Path, copy: Path) -> Path:
    """The copy: every file that stands for a link, as git writes it where links are not to be had, is one."""
    shutil.copytree(tree, copy, symlinks=True)
    for path in [copy, *copy.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    for path in list(copy.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < _LONGEST:
            content = path.read_bytes()
            if content.startswith(b"../") and b"\n" not in content:
                path.unlink()
                path.symlink_to(content.decode())
    return copy
