"""Libraries of the NVIDIA driver that an image holds: stubs, forward compatibility, and real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ncclcheck.facts.software.needed_libraries import LoaderSearch
from ncclcheck.facts.text_files import readable
from ncclcheck.model.image import DriverLibrary

_NAMES = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so")
# A stub holds only the names of functions: tens of KiB, where a driver's library has megabytes.
_STUB_BELOW_BYTES = 1 << 19


def driver_libraries(search: LoaderSearch, machine: int) -> tuple[DriverLibrary, ...]:
    """Return each of them that a program in the image would find, each file once, in the order of the loader."""
    found: dict[Path, DriverLibrary] = {}
    for name in _NAMES:
        for path, why in _places(name, search, machine):
            try:
                real = path.resolve(strict=True)
                size = real.stat().st_size
            except (OSError, RuntimeError):
                continue
            if real.is_file():
                found.setdefault(real, _library(path, real, size, why))
    return tuple(found.values())


def _places(name: str, search: LoaderSearch, machine: int) -> Iterator[tuple[Path, str]]:
    for folder, why in search.everywhere(machine):
        yield Path(folder, name), why
    for (cached, _), paths in search.cache.items():
        if cached == name:
            yield from ((Path(path), "the loader's cache (ldconfig)") for path in paths)


def _library(path: Path, real: Path, size: int, why: str) -> DriverLibrary:
    folders = {*path.parent.parts, *real.parent.parts}
    if "stubs" in folders or size < _STUB_BELOW_BYTES:
        return DriverLibrary(readable(str(path)), "stub", why)
    kind = any(part.startswith("compat") for part in folders)
    return DriverLibrary(readable(str(path)), "compat" if kind else "driver", why)
