"""Releases of NCCL that are known to hang: which, on which machines, by what, and who says so."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.nccl import versions


class KnownHang(Struct, frozen=True):
    """A defect of the releases from `first` until before `fixed`, on these machines (`uname -m`; empty: on all)."""

    first: versions.Version
    fixed: versions.Version
    machines: tuple[str, ...]
    what: str
    source: str


KNOWN_HANGS = (
    KnownHang(
        first=(2, 28, 9),
        fixed=(2, 29, 3),
        machines=("aarch64",),
        what="it loses slots of the proxy's pool of operations, and once that is empty a collective hangs for good, "
        "without an error",
        # src/proxy.cc, ncclProxyGetPostedOps: a weak compare-and-exchange whose result is not looked at. The released
        # wheels were bisected: 2.28.9 and 2.29.2 hang, 2.29.3 and 2.30.7 do not.
        source="NVIDIA/nccl#2353; NCCL 2.29.3 release notes, fixed issues; NCCL src/proxy.cc",
    ),
)


def known_hangs(version: str, machine: str) -> tuple[KnownHang, ...]:
    """Return the known hangs of this version of NCCL on such a machine."""
    number = versions.parse(version)
    return tuple(
        hang
        for hang in KNOWN_HANGS
        if hang.first <= number < hang.fixed and (not hang.machines or machine in hang.machines)
    )
