"""Mounts a filesystem whose server never answers, and prints what is told of paths on it; in a mount namespace."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path

from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.software.code import read_code
from ncclcheck.facts.storage.paths import WantedPath, read_paths
from ncclcheck.model.codec import encode


def mount_dead(folder: Path) -> None:
    """FUSE with a server that reads no request: stat(2) in the folder does not return (fuse(4))."""
    server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"dead", os.fsencode(folder), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), "mount")


def stuck_threads() -> int:
    """How many threads of this process are in an uninterruptible system call, which it could not end with."""
    stats = [(task / "stat").read_text().rpartition(")")[2] for task in Path("/proc/self/task").iterdir()]
    return sum(stat.split()[0] == "D" for stat in stats)


def main() -> None:
    """Arguments: a folder, in which `below` is made and mounted, and where a path with a dead one below it begins."""
    root = Path(sys.argv[1])
    mount_dead(root / "data" / "below")
    began = time.monotonic()
    dead = str(root / "data" / "below")
    code = start(read_code, (dead, str(root / "code")), 9.0)
    paths = read_paths((WantedPath(dead, "shared"), WantedPath(str(root / "data"), "data")))
    found = code.result(20.0)
    took = time.monotonic() - began
    sys.stdout.write(
        json.dumps([took, stuck_threads(), *(json.loads(encode(part)) for part in (paths, found))])
    )
    sys.stdout.flush()
    os._exit(0)  # nothing that may touch the mount


if __name__ == "__main__":
    main()
