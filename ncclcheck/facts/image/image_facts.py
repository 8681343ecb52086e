"""Reads a container image from within, on the machine that builds it: without GPU, network or peers."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.image.image_driver import driver_libraries
from ncclcheck.facts.image.image_limit_files import read_limit_files
from ncclcheck.facts.image.image_packages import pip_problems, read_imports
from ncclcheck.facts.image.image_verbs import own_machine, read_verbs
from ncclcheck.facts.nccl.nccl_plugins import DEFAULT, VARIABLE, plugin_files
from ncclcheck.facts.nccl.nccl_search import search_libraries
from ncclcheck.facts.software.elf import Dynamic
from ncclcheck.facts.software.needed_libraries import LoaderSearch, find, loader_cache, needed_libraries
from ncclcheck.facts.software.software import torch_folder
from ncclcheck.facts.tree import machine
from ncclcheck.model.fact import Missing
from ncclcheck.model.image import Examined, Image, Libraries

# What `import torch` and the first CUDA call load: the first by itself, before all others (torch/__init__.py).
_OF_TORCH = (
    "libtorch_global_deps.so",
    "libtorch_cpu.so",
    "libc10_cuda.so",
    "libtorch_cuda.so",
    "libtorch_python.so",
)


class ImageRequest(Struct, frozen=True):
    """Where to look: the environment of the image, its `/`, the folders of its Python packages, and the time for it."""

    environ: Mapping[str, str]
    root: Path = Path("/")
    search_path: Sequence[str] | None = None
    deadline_s: float = timeouts.IMAGE_FACTS_S


def read_image(request: ImageRequest) -> Image:
    """Return the whole section; what was not read by the deadline is Missing("timeout")."""
    end = time.monotonic() + request.deadline_s
    inner_s = max(request.deadline_s - timeouts.IMAGE_FACTS_INNER_S, request.deadline_s / 2)
    here = machine(request.root)
    imports = start(read_imports, request.environ, inner_s)
    packages = start(pip_problems, inner_s)
    search = LoaderSearch(request.environ, loader_cache(), preloaded=tuple(_of_packages(request)))
    machine_type = own_machine()
    verbs = start(read_verbs, search, here, machine_type)
    libraries = start(_libraries, request, search, machine_type)
    driver = start(driver_libraries, search, machine_type)
    limits = start(read_limit_files, here)

    def left_s() -> float:
        return end - time.monotonic()

    imported = imports.result(left_s())
    return Image(
        libraries=libraries.result(left_s()),
        torch=imported if isinstance(imported, Missing) else imported.torch,
        imports=imported if isinstance(imported, Missing) else imported.failed,
        packages=packages.result(left_s()),
        verbs=verbs.result(left_s()),
        driver_libraries=driver.result(left_s()),
        limits=limits.result(left_s()),
    )


def _entries(request: ImageRequest) -> list[str]:
    return [entry for entry in (request.search_path or sys.path) if entry]


def _of_packages(request: ImageRequest) -> list[str]:
    """Return the folders from which torch loads NVIDIA's libraries where the loader fails (torch/__init__.py)."""
    return [str(folder) for entry in _entries(request) for folder in sorted(Path(entry).glob("nvidia/*/lib"))]


def _libraries(request: ImageRequest, search: LoaderSearch, machine_type: int) -> Libraries:
    return needed_libraries(list(dict.fromkeys(_examined(request, search, machine_type))), search)


def _examined(request: ImageRequest, search: LoaderSearch, machine_type: int) -> list[Examined]:
    """Return torch's libraries, NCCL, the plug-ins that NCCL would try, libibverbs and its providers."""
    entries = _entries(request)
    folder = torch_folder(entries)
    files = [] if folder is None else [folder / "lib" / name for name in _OF_TORCH]
    found = [Examined("torch", str(file)) for file in files if file.is_file()]
    found += [Examined("NCCL", library.path) for library in search_libraries(request.environ, entries)[:1]]
    found += [Examined("network plug-in", path) for path in _plugins(request.environ, search, machine_type)]
    verbs = read_verbs(search, machine(request.root), machine_type)
    if not isinstance(verbs.library, Missing):
        found += [Examined("verbs", path) for path in (verbs.library, *verbs.providers)]
    return found


def _plugins(environ: Mapping[str, str], search: LoaderSearch, machine_type: int) -> list[str]:
    """Return the files that the loader finds for NCCL_NET_PLUGIN, or under the name that NCCL tries by itself."""
    names = [name for group in plugin_files(environ.get(VARIABLE)) for name in group]
    program = Dynamic(machine_type, "", (), (), (), (0, 0))
    places = [find(name, Path("/"), program, search) for name in dict.fromkeys([*names, DEFAULT])]
    return [str(place[0]) for place in places if place is not None]
