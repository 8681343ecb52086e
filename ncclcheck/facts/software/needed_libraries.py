"""Finds every shared library that files need, as the loader would, and names those that are not there.

`ldd` would start the loader itself; here the files are only read, so that a build machine without GPU is enough.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.child import ChildResult, run_child
from ncclcheck.facts.nccl.nccl_search import expanded, library_path
from ncclcheck.facts.software.elf import Dynamic, read_dynamic
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.image import AbsentLibrary, DamagedLibrary, Examined, Libraries

# What the loader tries after its cache (ld.so(8)), with Debian's multiarch folders.
_MULTIARCH = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}  # e_machine of elf.h
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_KINDS = {62: "x86-64", 183: "AArch64"}  # as `ldconfig -p` writes the machine
_CACHED = re.compile(r"^\s*(\S+) \((.*?)\) => (.+)$", re.MULTILINE)
# Mounted into the container by NVIDIA's container runtime, of the host's driver version.
_OF_DRIVER = re.compile(r"lib(cuda|nvidia-[\w.-]+|nvcuvid|nvoptix|cudadebugger|nvidia_[\w]+)\.so(\.|$)")
_KERNEL_ITSELF = re.compile(r"(linux-vdso|linux-gate|ld-linux[\w-]*|ld64)\.so")
_MOST_FILES = 4000


class LoaderSearch(Struct, frozen=True):
    """Where the loader looks: LD_LIBRARY_PATH, its cache (name -> paths for each machine), the default folders.

    `preloaded`: folders whose libraries torch itself loads first (NVIDIA's packages).
    """

    environ: Mapping[str, str]
    cache: Mapping[tuple[str, str], tuple[str, ...]]
    folders: tuple[str, ...] = _DEFAULT_FOLDERS
    preloaded: tuple[str, ...] = ()

    def everywhere(self, machine: int) -> Iterator[tuple[str, str]]:
        """Yield the folders that the loader searches for any library, each with the reason, the cache apart."""
        yield from ((folder, "LD_LIBRARY_PATH") for folder in library_path(self.environ))
        multiarch = _MULTIARCH.get(machine)
        defaults = [*(f"{top}/{multiarch}" for top in ("/lib", "/usr/lib") if multiarch), *self.folders]
        yield from ((folder, "a default folder of the loader") for folder in defaults)


class _Loaded(Struct, frozen=True):
    path: Path
    dynamic: Dynamic
    loaders: tuple[_Loaded, ...]


def loader_cache(deadline_s: float = timeouts.LOADER_CACHE_S) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what the loader's cache holds: (name, machine) -> paths in its order. Empty where there is none."""
    listing = run_child(["/sbin/ldconfig", "-p"], deadline_s=deadline_s)
    if isinstance(listing, Missing):
        return {}
    return cache_of(listing)


def cache_of(listing: ChildResult) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the same of the output of `ldconfig -p`."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for name, kind, path in _CACHED.findall(listing.stdout.decode("utf-8", "replace")):
        for machine in _KINDS.values():
            if machine in kind:
                found[name, machine] = (*found.get((name, machine), ()), path)
    return found


def needed_libraries(files: Sequence[Examined], search: LoaderSearch) -> Libraries:
    """Return what the files and all their libraries need and the loader would not find.

    As in one process, a library that is loaded already satisfies all who name it, wherever they would look themselves.
    """
    loaded: dict[str, Path] = {}
    found = _Found()
    for file in files:
        dynamic = read_dynamic(Path(file.path))
        if not isinstance(dynamic, Missing):
            found.examined.append(file)
            _follow(_Loaded(Path(file.path), dynamic, ()), file, search, loaded, found)
        elif dynamic.missing == "error":
            found.damaged.setdefault(file.path, _damaged(file.path, dynamic, file))
        else:
            found.unreadable[readable(file.path)] = readable(dynamic.detail)
    return Libraries(
        tuple(found.examined),
        tuple(found.absent.values()),
        tuple(dict.fromkeys(found.of_driver)),
        found.unreadable,
        tuple(found.damaged.values()),
    )


class _Found:
    """What is known so far; it grows with each file."""

    def __init__(self) -> None:
        self.examined: list[Examined] = []
        self.absent: dict[tuple[str, str], AbsentLibrary] = {}
        self.of_driver: list[str] = []
        self.unreadable: dict[str, str] = {}
        self.damaged: dict[str, DamagedLibrary] = {}


def _follow(
    top: _Loaded, file: Examined, search: LoaderSearch, loaded: dict[str, Path], found: _Found
) -> None:
    """Look for all that one file needs, down to the last; `loaded` and `found` grow."""
    waiting = deque([top])
    while waiting and len(loaded) < _MOST_FILES:
        needed = waiting.popleft()
        if needed.dynamic.soname:
            loaded.setdefault(needed.dynamic.soname, needed.path)
        for name in needed.dynamic.needed:
            if name in loaded or _KERNEL_ITSELF.match(name):
                continue
            place = find(name, needed.path, needed.dynamic, search, needed.loaders)
            if place is not None:
                path, of_path = place
                loaded[name] = path
                if isinstance(of_path, Missing):
                    found.damaged.setdefault(str(path), _damaged(str(path), of_path, file))
                else:
                    waiting.append(_Loaded(path, of_path, (needed, *needed.loaders)))
            elif _OF_DRIVER.match(name):
                found.of_driver.append(name)
            else:
                lacking = AbsentLibrary(readable(name), readable(str(needed.path)), file)
                found.absent.setdefault((name, str(needed.path)), lacking)


def _damaged(path: str, why: Missing, examined: Examined) -> DamagedLibrary:
    return DamagedLibrary(readable(path), readable(why.detail), examined)


def find(
    name: str, library: Path, dynamic: Dynamic, search: LoaderSearch, loaders: Iterable[_Loaded] = ()
) -> tuple[Path, Fact[Dynamic]] | None:
    """Return where the loader finds `name` for `library`, by the order of ld.so(8); None where it does not.

    A damaged file ends its search, and the program's start: Missing "error". Libraries of another machine are passed
    over (glibc, elf/dl-load.c, open_verify).
    """
    for path in _places(name, library, dynamic, search, loaders):
        found = read_dynamic(path)
        if isinstance(found, Missing):
            if found.missing == "error":
                return path, found
        elif found.machine == dynamic.machine:
            return path, found
    return None


def _places(
    name: str, library: Path, dynamic: Dynamic, search: LoaderSearch, loaders: Iterable[_Loaded]
) -> Iterator[Path]:
    if "/" in name:
        yield Path(name)
        return
    if not dynamic.runpath:
        yield from (Path(folder, name) for folder in expanded(dynamic.rpath, library))
        for loader in loaders:
            if not loader.dynamic.runpath:
                yield from (Path(folder, name) for folder in expanded(loader.dynamic.rpath, loader.path))
    yield from (Path(folder, name) for folder in library_path(search.environ))
    yield from (Path(folder, name) for folder in expanded(dynamic.runpath, library))
    yield from map(Path, search.cache.get((name, _KINDS.get(dynamic.machine, "")), ()))
    yield from (
        Path(folder, name) for folder, why in search.everywhere(dynamic.machine) if why != "LD_LIBRARY_PATH"
    )
    yield from (Path(folder, name) for folder in search.preloaded)
