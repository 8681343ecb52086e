"""Finds every NCCL library that a process of this node could load, and which of them torch would get."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.child import ChildResult, run_child
from ncclcheck.facts.software.elf import Dynamic, mentions, read_dynamic
from ncclcheck.facts.software.software import torch_folder
from ncclcheck.model.fact import Missing

SONAME = "libnccl.so.2"
# The library itself, also as auditwheel renames it (libnccl-6b2e1f4d.so.2); not libnccl-net.so or libnccl-tuner.so.
_NAME = re.compile(r"libnccl(-[0-9a-f]{8})?\.so(\.|$)")
# What the system's loader tries where it has no cache (ld.so(8)), with Debian's multiarch folders.
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
# What `import torch` loads on its way to NCCL: the first by itself, before all others (torch/__init__.py).
_TORCH_CUDA, _TORCH_LOADS_FIRST = "libtorch_cuda.so", "libtorch_global_deps.so"
_TORCH_CHAIN = ("libtorch.so", "libtorch_python.so")  # whose DT_RPATH counts for what they load, too


class Found(Struct, frozen=True):
    """A library file, the way it was found, and whether it is the one torch would load."""

    path: str
    origin: str
    loaded_by_torch: bool = False


def search_libraries(
    environ: Mapping[str, str], search_path: Sequence[str] | None = None
) -> tuple[Found, ...]:
    """Return every NCCL library file once, with the first way it was found by; torch's first.

    Where torch has CUDA, its own is found by the loader's rules (ld.so(8)): a preloaded one; the DT_RPATH of
    libtorch_cuda.so; LD_LIBRARY_PATH; its DT_RUNPATH; the cache; the system's folders. Otherwise none is torch's.
    """
    entries = [entry for entry in (sys.path if search_path is None else search_path) if entry]
    folder = torch_folder(entries)
    system = _system(environ)
    candidates = list(_candidates(environ, folder, entries, system))
    torch_library = None if folder is None else _torchs_own(environ, folder / "lib", candidates, system)
    found: dict[tuple[int, int], Found] = {}
    for candidate in [*([torch_library] if torch_library else []), *candidates]:
        identity = _identity(Path(candidate.path))
        if identity is not None:
            found.setdefault(identity, candidate)
    return tuple(found.values())


def rpath_folders(search_path: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the folders where the loader looks before LD_LIBRARY_PATH for what torch's libraries load."""
    folder = torch_folder([entry for entry in (sys.path if search_path is None else search_path) if entry])
    if folder is None:
        return ()
    library = folder / "lib" / _TORCH_CUDA
    dynamic = read_dynamic(library)
    if isinstance(dynamic, Missing) or dynamic.runpath:
        return ()
    return tuple(expanded(dynamic.rpath, library))


def cached_libraries(listing: str, machine: str, name: str = SONAME) -> list[Path]:
    """Return the libraries of that name for this machine in the output of `ldconfig -p`."""
    architecture = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(machine, machine)
    lines = re.findall(rf"^\s*{re.escape(name)} \((.*?)\) => (.+)$", listing, re.MULTILINE)
    return [Path(path) for kind, path in lines if architecture in kind]


def _candidates(
    environ: Mapping[str, str], torch: Path | None, entries: list[str], system: Sequence[Found]
) -> Iterator[Found]:
    folders = library_path(environ)
    yield from _preloaded(environ, folders)
    if torch is not None:
        yield from _wheels(torch.parent, "torch's package")
    for entry in entries:
        yield from _wheels(Path(entry), "Python package")
    if torch is not None:
        yield from (Found(str(path), "torch") for path in sorted((torch / "lib").glob("libnccl*.so*")))
    yield from (Found(str(Path(folder, SONAME)), "LD_LIBRARY_PATH") for folder in folders)
    yield from system


def _wheels(site: Path, origin: str) -> Iterator[Found]:
    """Yield NVIDIA's packages nvidia-nccl-cu11 and later, which have it in nvidia/nccl/lib."""
    yield from (Found(str(path), origin) for path in sorted(site.glob(f"nvidia/*/lib/{SONAME}")))


def library_path(environ: Mapping[str, str]) -> list[str]:
    """Return the folders of LD_LIBRARY_PATH; an empty entry among others is the working directory (ld.so(8))."""
    value = environ.get("LD_LIBRARY_PATH", "")
    return [entry or "." for entry in re.split("[:;]", value)] if value else []


def _preloaded(environ: Mapping[str, str], folders: Sequence[str]) -> Iterator[Found]:
    for entry in re.split(r"[:\s]+", environ.get("LD_PRELOAD", "")):  # ld.so(8): both separate
        paths = [entry] if "/" in entry else [str(Path(folder, entry)) for folder in folders]
        if entry and "nccl" in entry:
            yield from (Found(path, "LD_PRELOAD") for path in paths if _is_nccl(Path(path)))


def _is_nccl(path: Path) -> bool:
    if _NAME.match(path.name):
        return True
    dynamic = read_dynamic(path)
    return not isinstance(dynamic, Missing) and bool(_NAME.match(dynamic.soname))


def _system(environ: Mapping[str, str]) -> list[Found]:
    """Return what the loader's cache names, the default folders, conda's.

    Ctypes.util would start a compiler to find out.
    """
    listing = run_child(["/sbin/ldconfig", "-p"], deadline_s=2.0)
    cached: list[Path] = []
    if isinstance(listing, ChildResult) and listing.returncode == 0:
        cached = cached_libraries(listing.stdout.decode("utf-8", "replace"), os.uname().machine)
    multiarch = f"/usr/lib/{os.uname().machine}-linux-gnu"
    conda = dict.fromkeys([environ.get("CONDA_PREFIX") or sys.prefix, sys.prefix])
    return [
        *(Found(str(path), "loader cache") for path in cached),
        *(Found(str(Path(folder, SONAME)), "system folder") for folder in (multiarch, *_DEFAULT_FOLDERS)),
        *(Found(str(Path(prefix, "lib", SONAME)), "conda") for prefix in conda),
    ]


def _torchs_own(
    environ: Mapping[str, str], lib: Path, candidates: Sequence[Found], system: Sequence[Found]
) -> Found | None:
    """Return the library that torch would load.

    None where this torch has no CUDA, or has NCCL linked in, where it cannot be asked.
    """
    cuda = lib / _TORCH_CUDA
    if not cuda.is_file():
        return None
    existing = [candidate for candidate in candidates if Path(candidate.path).is_file()]
    dynamic = read_dynamic(cuda)
    if isinstance(dynamic, Missing):  # the present order is the one the loader follows for torch's wheels
        return replace(existing[0], loaded_by_torch=True) if existing else None
    preloaded = [found for found in existing if found.origin == "LD_PRELOAD"]
    if preloaded:
        return replace(preloaded[0], loaded_by_torch=True)
    for path in (lib / _TORCH_LOADS_FIRST, cuda):
        of_path = dynamic if path == cuda else read_dynamic(path)
        if isinstance(of_path, Missing):
            continue
        needed = next((name for name in of_path.needed if _NAME.match(name)), None)
        if needed is not None:
            chain = [(path, of_path), *_chain(lib)]
            return _resolved(needed, chain, environ, system) or _preloaded_by_torch(existing)
    if mentions(cuda, dynamic, "ncclGetUniqueId"):
        return Found(str(cuda), "inside libtorch_cuda.so", loaded_by_torch=True)
    return None


def _chain(lib: Path) -> list[tuple[Path, Dynamic]]:
    """Return the libraries that load libtorch_cuda.so, and the program that loads them."""
    found = []
    for path in (*(lib / name for name in _TORCH_CHAIN), Path(os.path.realpath(sys.executable))):
        dynamic = read_dynamic(path)
        if not isinstance(dynamic, Missing):
            found.append((path, dynamic))
    return found


def _resolved(
    name: str, chain: Sequence[tuple[Path, Dynamic]], environ: Mapping[str, str], system: Sequence[Found]
) -> Found | None:
    """Return where the loader finds `name` for the first of the chain, by the order of ld.so(8)."""
    (library, dynamic), *loaders = chain
    for path, origin in _places(library, dynamic, loaders, environ):
        if _is_for(path / name, dynamic.machine):
            return Found(str(path / name), origin, loaded_by_torch=True)
    for found in system:
        if (
            found.origin != "conda"
            and Path(found.path).name == name
            and _is_for(Path(found.path), dynamic.machine)
        ):
            return replace(found, loaded_by_torch=True)
    return None


def _places(
    library: Path, dynamic: Dynamic, loaders: Sequence[tuple[Path, Dynamic]], environ: Mapping[str, str]
) -> Iterator[tuple[Path, str]]:
    if not dynamic.runpath:
        for path, loader in [(library, dynamic), *loaders]:
            if not loader.runpath:
                origin = f"torch (DT_RPATH of {path.name})"
                yield from ((Path(folder), origin) for folder in expanded(loader.rpath, path))
    yield from ((Path(folder), "LD_LIBRARY_PATH") for folder in library_path(environ))
    origin = f"torch (DT_RUNPATH of {library.name})"
    yield from ((Path(folder), origin) for folder in expanded(dynamic.runpath, library))


def _preloaded_by_torch(existing: Iterable[Found]) -> Found | None:
    """Return what torch loads where the loader finds nothing: NVIDIA's package (_preload_cuda_deps)."""
    packages = [found for found in existing if found.origin in ("torch's package", "Python package")]
    return replace(packages[0], loaded_by_torch=True) if packages else None


def expanded(folders: Iterable[str], library: Path) -> Iterator[str]:
    """Yield the folders of a search path with $ORIGIN replaced; other dynamic string tokens are not known here."""
    for folder in folders:
        path = re.sub(r"\$(ORIGIN\b|\{ORIGIN\})", lambda _: str(library.parent), folder)
        if "$" not in path:
            yield os.path.realpath(path)


def _is_for(path: Path, machine: int) -> bool:
    """Return whether the file is a library of this machine; the loader skips others."""
    if not path.is_file():
        return False
    dynamic = read_dynamic(path)
    return isinstance(dynamic, Missing) or dynamic.machine == machine


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if path.is_file() else None
