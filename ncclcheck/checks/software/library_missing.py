"""NC512 library-missing."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.images import judged
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.image import AbsentLibrary, DamagedLibrary, Libraries
from ncclcheck.model.snapshot import Node, Snapshot

_WHY = {
    "torch": "'import torch' or its first use ends with 'cannot open shared object file'",
    "NCCL": "NCCL cannot be loaded, and no job of several GPUs starts",
    "network plug-in": "NCCL reports no error when it cannot load a plug-in, and falls back to slow sockets",
    "verbs": "the cards that need it are not found, and NCCL falls back to slow sockets",
}

_SEVERE = ("torch", "NCCL", "network plug-in")


@check(
    "NC512",
    "library-missing",
    "Every shared library that torch, NCCL, its plug-in and verbs need is in the image",
    needs=("image",),
    image="only",
)
def library_missing(snapshot: Snapshot) -> Iterator[Answer]:
    """The loader finds all libraries of torch, of the NCCL it loads, of the network plug-ins and of libibverbs.

    The check follows all dependencies and names each missing library with the file that needs it, and each damaged
    one: truncated by a full disk or an interrupted copy, or not a library at all (a Git LFS pointer). Libraries that
    NVIDIA's container runtime mounts from the host (libcuda.so.1, libnvidia-ml.so.1 and the like) may be missing.

    ## Why it matters
    A library missing in an image shows only when the job starts, and only in the program that loads it. NCCL falls
    back to sockets without an error if its plug-in or libibverbs cannot be loaded.

    ## How to fix
    Install the package that has the library, or put its folder into /etc/ld.so.conf.d (and run ldconfig) or into
    LD_LIBRARY_PATH of the image.

    ## Source
    DT_NEEDED, DT_RPATH and DT_RUNPATH of the files themselves (elf(5)), searched in the order of ld.so(8); NCCL
    src/misc/ibvsymbols.cc and src/plugin/plugin_open.cc for what it loads.
    """
    yield from judged(snapshot, "shared libraries", lambda image: image.libraries, _judge)


def _judge(node: Node, libraries: Libraries) -> Iterator[Answer]:
    lacking: dict[str, list[AbsentLibrary]] = {}
    for library in libraries.absent:
        lacking.setdefault(library.name, []).append(library)
    for name, members in lacking.items():
        yield _finding(node.host, name, members)
    for damaged in libraries.damaged:
        yield _of_damaged(node.host, damaged)
    for path, why in libraries.unreadable.items():
        yield NotKnown(f"what {path} needs: {why}", (node.host,))
    looked_at = (*libraries.examined, *(library.examined for library in libraries.damaged))
    if not any(examined.part == "torch" for examined in looked_at):
        yield NotKnown("no library of torch was found", (node.host,))


def _finding(host: str, name: str, absent: list[AbsentLibrary]) -> Finding:
    parts = list(dict.fromkeys(library.examined.part for library in absent))
    severe = any(part in _SEVERE for part in parts)
    return Finding(
        "error" if severe else "warning",
        f"the shared library {name} is missing in the image, and {' and '.join(parts)} need{'s' * (len(parts) == 1)} "
        f"it: {_WHY[parts[0]]}",
        (host,),
        tuple(
            Evidence(
                (host,),
                f"{name}, needed by {library.needed_by}",
                "not found",
                "found by the loader",
                f"DT_NEEDED; for {library.examined.path}",
            )
            for library in absent
        ),
        (
            Fix(
                "install the package that has it, or add its folder to the loader's path",
                (
                    f"find / -xdev -name '{name}*'",
                    f"apt-file search {name}   # or: dnf provides '*/{name}'",
                    "ldconfig",
                ),
            ),
        ),
    )


def _of_damaged(host: str, library: DamagedLibrary) -> Finding:
    part, why = library.examined.part, library.why.removeprefix(library.path).strip()
    return Finding(
        "error" if part in _SEVERE else "warning",
        f"the library {library.path} in the image is damaged, and {part} needs it: it {why}",
        (host,),
        (
            Evidence(
                (host,),
                library.path,
                library.why,
                "a whole ELF file",
                f"its headers; for {library.examined.path}",
            ),
        ),
        (
            Fix(
                "install the package that has it again; the build may have run out of space, or a "
                "copy was interrupted",
                (
                    f"ls -lL {library.path}; file -L {library.path}",
                    f"dpkg -S {library.path}   # or: rpm -qf; pip show -f",
                ),
            ),
        ),
    )
