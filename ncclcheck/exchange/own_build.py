"""Which ncclcheck a process runs: its version, and what tells two states of the same version apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import ncclcheck
from ncclcheck.exchange.store.recording import digest_of

_DIGITS = 8


@cache
def own_build() -> str:
    """Return the version with a digest of the names and sizes of the package's modules; no file of it is read."""
    package = Path(ncclcheck.__file__).parent
    listing = "\n".join(sorted(_modules(str(package), len(str(package)))))
    return f"{ncclcheck.__version__} ({digest_of(listing.encode())[:_DIGITS]})"


def _modules(folder: str, above: int) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield f"{entry.path[above:]} {entry.stat().st_size}"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _modules(entry.path, above)
