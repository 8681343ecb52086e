"""NC517 nccl-known-hang."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.known_hangs import KnownHang, known_hangs
from ncclcheck.nccl.versions import is_version

_Found: TypeAlias = tuple[KnownHang, str, str]  # the defect, the version, the machine


@check(
    "NC517",
    "nccl-known-hang",
    "The NCCL that is loaded is not one that is known to hang on such machines",
    needs=("software",),
    image=True,
)
def nccl_known_hang(snapshot: Snapshot) -> Iterator[Answer]:
    """No node loads a release of NCCL with a published defect that makes healthy jobs hang on its machine.

    One is known: NCCL 2.28.9 to 2.29.2 on aarch64 (Grace: GH200, GB200, GB300).

    ## Why it matters
    Such a hang has no error and no culprit: all ranks wait in a collective, after seconds or after days, and the
    search goes to the network and the model.

    ## How to fix
    Install a release with the fix. NCCL releases with one major version of CUDA are compatible, so the package can be
    replaced alone.

    ## Source
    NVIDIA/nccl#2353 (bisected releases); NCCL 2.29.3 release notes; NCCL src/proxy.cc of 2.28.9, 2.29.2 and 2.29.3.
    """
    found: dict[_Found, list[str]] = {}
    for node, software in snapshot.known("software"):
        if isinstance(software.nccl, Missing) or not is_version(software.nccl):
            if not isinstance(software.nccl, Missing) or software.nccl.missing != "absent":
                yield NotKnown(f"NCCL version: {software.nccl}", (node.host,))
            continue
        for hang in known_hangs(software.nccl, software.machine):
            found.setdefault((hang, software.nccl, software.machine), []).append(node.host)
    for (hang, version, machine), hosts in found.items():
        yield _finding(hang, version, machine, tuple(hosts))
    yield from not_reported(snapshot)


def _finding(hang: KnownHang, version: str, machine: str, hosts: tuple[str, ...]) -> Finding:
    fixed = ".".join(map(str, hang.fixed))
    return Finding(
        "warning",
        f"{named(hosts)} {verb(hosts, 'loads', 'load')} NCCL {version}, which is known to hang on {machine}: "
        f"{hang.what}",
        hosts,
        (Evidence(hosts, "NCCL version", f"{version} on {machine}", f"{fixed} or newer", hang.source),),
        (
            Fix(
                f"install NCCL {fixed} or newer on every node",
                (
                    "pip list | grep -i nccl",
                    f"pip install 'nvidia-nccl-cu13>={fixed}'   # or nvidia-nccl-cu12",
                ),
            ),
        ),
    )
