"""NC502 nccl-differs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.majority import HostComparison, compare, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

_NOT_THERE = "no NCCL"


@check(
    "NC502",
    "nccl-differs",
    "Every node loads the same NCCL version",
    needs=("software",),
    nodes=2,
    joined=True,
)
def nccl_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The NCCL library that torch would load answers with the same version on every node.

    ## Why it matters
    NCCL's messages between ranks change with every release and are not compatible. Different versions fail at the
    start with an internal error, hang, or crash in the first collective.

    ## How to fix
    Install the same torch (which pins NCCL) on all nodes. Look for another libnccl.so.2 in LD_LIBRARY_PATH, LD_PRELOAD
    and conda: the evidence names the file that each node loads.

    ## Source
    ncclGetVersion of the library itself; NCCL src/bootstrap.cc and src/init.cc (ncclPeerInfo is sent as it is).
    """
    known: list[tuple[str, str]] = []
    libraries: dict[str, str] = {}
    for node, software in snapshot.known("software"):
        libraries[node.host] = _library(node.facts)
        if not isinstance(software.nccl, Missing):
            known.append((node.host, software.nccl))
        elif software.nccl.missing == "absent":
            known.append((node.host, _NOT_THERE))
        else:
            yield NotKnown(f"NCCL version: {software.nccl}", (node.host,))
    versions = compare(known)
    if versions.differs:
        yield _finding(versions, libraries)
    elif known and known[0][1] == _NOT_THERE:
        yield NotKnown("no node has an NCCL library")
    yield from not_reported(snapshot)


def _library(facts: NodeFacts) -> str:
    if isinstance(facts.nccl, Missing):
        return "library not known"
    asked = facts.nccl.asked
    return f"library not known ({asked})" if isinstance(asked, Missing) else asked.library


def _finding(versions: HostComparison[str], libraries: dict[str, str]) -> Finding:
    usual = "the same on every node" if versions.usual is None else versions.usual.value
    pieces: dict[tuple[str, str], list[str]] = {}
    for group in versions.groups:
        for host in group.hosts:
            pieces.setdefault((group.value, libraries[host]), []).append(host)
    return Finding(
        "error",
        f"NCCL differs: {sentence(versions)}: ranks of different versions cannot communicate",
        versions.odd_hosts,
        tuple(
            Evidence(tuple(hosts), "NCCL version", version, usual, library)
            for (version, library), hosts in pieces.items()
        ),
        (
            Fix(
                "install the same torch and NCCL on all nodes, and look for another libnccl.so.2 in the library path",
                ("pip list | grep -i -e torch -e nccl", "echo $LD_LIBRARY_PATH $LD_PRELOAD"),
            ),
        ),
    )
