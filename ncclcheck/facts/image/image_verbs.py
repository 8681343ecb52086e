"""libibverbs and its providers in an image, read from the files: there is no RDMA card to open."""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.software.elf import Dynamic, read_dynamic
from ncclcheck.facts.software.needed_libraries import LoaderSearch, find
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.image import Verbs

NAMES = ("libibverbs.so", "libibverbs.so.1")  # NCCL, src/misc/ibvsymbols.cc, in this order
_PROVIDER = re.compile(r"lib[\w]+-rdmav(\d+)\.so")
_SUFFIX = re.compile(
    rb"-rdmav(\d{1,4})\.so"
)  # VERBS_PROVIDER_SUFFIX, compiled in (rdma-core, buildlib/config.h.in)
_VERSION = re.compile(r"\.so\.([\d.]+)$")
_CONFIG = "etc/libibverbs.d"  # IBV_CONFIG_DIR, libibverbs/init.c of rdma-core: `driver mlx5` in *.driver


def read_verbs(search: LoaderSearch, here: Folder, machine: int) -> Verbs:
    """Return the libibverbs that a process would load, its version and ABI, and the providers that it could load."""
    program = Dynamic(machine, "", (), (), (), (0, 0))
    found = None
    for name in NAMES:
        found = found or find(name, Path("/"), program, search)
    if found is None:
        absent = Missing("absent", f"no {NAMES[1]} where the loader looks")
        return Verbs(absent, absent, absent, (), absent)
    path = Path(os.path.realpath(found[0]))
    match = _VERSION.search(path.name)
    providers = sorted(
        readable(str(file))
        for folder in (path.parent / "libibverbs", path.parent)
        if folder.is_dir()
        for file in folder.iterdir()
        if _PROVIDER.fullmatch(file.name)
    )
    return Verbs(
        readable(str(found[0])),
        match[1] if match else Missing("unsupported", f"{path.name} has no version in its name"),
        provider_abi(path),
        tuple(providers),
        _drivers(here),
    )


def provider_abi(library: Path) -> Fact[int]:
    """Return the N of the suffix `-rdmavN.so` in the library's text."""
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            match = _SUFFIX.search(data)
            return (
                int(match[1]) if match else Missing("unsupported", f"{library} names no suffix of providers")
            )
    except (OSError, ValueError) as error:
        return missing_for(error, str(library))


def abi_of(provider: str) -> int | None:
    """Return the N in the name of a provider's file."""
    match = _PROVIDER.fullmatch(Path(provider).name)
    return int(match[1]) if match else None


def _drivers(here: Folder) -> Fact[tuple[str, ...]]:
    names = here.names(_CONFIG)
    if isinstance(names, Missing):
        return names
    found = []
    for name in names:
        text = here.text(f"{_CONFIG}/{name}")
        lines = [] if isinstance(text, Missing) else text.splitlines()
        found += [words[1] for words in map(str.split, lines) if len(words) == 2 and words[0] == "driver"]  # noqa: PLR2004
    return tuple(dict.fromkeys(found))


def own_machine() -> int:
    """Return e_machine of this interpreter."""
    dynamic = read_dynamic(Path("/proc/self/exe"))
    return 62 if isinstance(dynamic, Missing) else dynamic.machine  # x86-64
