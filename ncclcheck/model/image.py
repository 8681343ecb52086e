"""What a container image holds, read on the machine that builds it: a section of `NodeFacts` of `preflight --image`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.fact import Fact

Part: TypeAlias = Literal["torch", "NCCL", "network plug-in", "verbs"]


class Examined(Struct, frozen=True, forbid_unknown_fields=True):
    """A file whose shared libraries were looked for, with all that these need in their turn."""

    part: Part
    path: str


class AbsentLibrary(Struct, frozen=True, forbid_unknown_fields=True):
    """A shared library that the loader would not find: who needs it, and for which examined file."""

    name: str
    needed_by: str
    examined: Examined


class DamagedLibrary(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the loader takes and cannot load, as no whole ELF file is in it: why, and for which examined file."""

    path: str
    why: str
    examined: Examined


class Libraries(Struct, frozen=True, forbid_unknown_fields=True):
    """The examined files, what they lack, and what only the driver of a node brings (libcuda.so.1 and the like).

    `unreadable`: path -> why, of files that could not be read, so that nothing is known of their needs.
    """

    examined: tuple[Examined, ...]
    absent: tuple[AbsentLibrary, ...]
    of_driver: tuple[str, ...] = ()
    unreadable: dict[str, str] = {}
    damaged: tuple[DamagedLibrary, ...] = ()


class TorchBuild(Struct, frozen=True, forbid_unknown_fields=True):
    """What torch says of itself, which needs no GPU. `nccl`: the version it was compiled with."""

    cuda: Fact[str]
    nccl: Fact[str]
    architectures: Fact[tuple[str, ...]]  # sm_80, compute_90


class Verbs(Struct, frozen=True, forbid_unknown_fields=True):
    """libibverbs and its providers, the libraries that speak to one kind of card each.

    `abi`: the N of the `-rdmavN.so` that this libibverbs loads. `providers`: the files there are, `drivers` the names
    in /etc/libibverbs.d that it would load.
    """

    library: Fact[str]
    version: Fact[str]
    abi: Fact[int]
    providers: tuple[str, ...]
    drivers: Fact[tuple[str, ...]]


class DriverLibrary(Struct, frozen=True, forbid_unknown_fields=True):
    """A library of the NVIDIA driver in the image; `found_by`: why a program would get it.

    "stub": it only lets programs be linked; "compat": of CUDA's forward compatibility package; "driver": a real one.
    """

    path: str
    kind: Literal["stub", "compat", "driver"]
    found_by: str


class SetLimit(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit that a file of the image sets. `value`: as it is written; `item`: memlock, nofile, nproc."""

    file: str
    line: int
    whom: str
    item: str
    value: str


class Image(Struct, frozen=True, forbid_unknown_fields=True):
    """All of it. `imports`: module -> why it cannot be imported; `packages`: what pip's own check complains about."""

    libraries: Fact[Libraries]
    torch: Fact[TorchBuild]
    imports: Fact[dict[str, str]]
    packages: Fact[tuple[str, ...]]
    verbs: Fact[Verbs]
    driver_libraries: Fact[tuple[DriverLibrary, ...]]
    limits: Fact[tuple[SetLimit, ...]]


__all__ = [
    "AbsentLibrary",
    "DamagedLibrary",
    "DriverLibrary",
    "Examined",
    "Image",
    "Libraries",
    "SetLimit",
    "TorchBuild",
    "Verbs",
]
