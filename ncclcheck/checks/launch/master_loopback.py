"""NC105 master-loopback."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, verb
from ncclcheck.checks.launch._master import (
    Sighting,
    first_address,
    hosts_of,
    not_seen,
    path_evidence,
    sightings,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix, NotApplicable, Severity
from ncclcheck.model.formats.addresses import is_loopback, names_this_machine
from ncclcheck.model.snapshot import Snapshot


@check("NC105", "master-loopback", "MASTER_ADDR is not a loopback address")
def master_loopback(snapshot: Snapshot) -> Iterator[Answer]:
    """On every node MASTER_ADDR resolves to node 0 and not to a loopback address, or to 0.0.0.0.

    ## Why it matters
    With 127.0.0.1, 0.0.0.0, or a host name that /etc/hosts maps to 127.0.1.1, every node looks for the store on itself.
    Each then waits alone until its timeout. On node 0 alone a loopback name still works, because the store
    listens on all addresses, so there it is only a warning.

    ## How to fix
    Set MASTER_ADDR to node 0's address on the network between the nodes, the same on every node. torchrun's static
    rendezvous uses 127.0.0.1 when `--master-addr` is not given.

    ## Source
    torch/csrc/distributed/c10d/TCPStore.cpp binds all addresses; torch/distributed/run.py has the default 127.0.0.1.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node: its ranks connect over loopback")
        return
    seen = tuple(sighting for sighting in sightings(snapshot) if _is_loopback(sighting))
    wrong = tuple(
        sighting for sighting in seen if sighting.node_rank != 0 or names_this_machine(sighting.path.name)
    )
    if wrong:
        yield _finding("error", wrong, "so each of these nodes looks for node 0 on itself")
    elif seen:
        yield _finding(
            "warning", seen, "which works only on node 0; on other nodes it must resolve to another address"
        )
    yield from not_seen(snapshot, "loopback")


def _is_loopback(sighting: Sighting) -> bool:
    address = first_address(sighting.path)
    return sighting.path.outcome == "loopback" or (
        sighting.path.outcome in {"serving", "answered"} and address is not None and is_loopback(address)
    )


def _finding(severity: Severity, seen: tuple[Sighting, ...], why: str) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    address = first_address(path) or "a loopback address"
    if address != path.name:
        target = f"{path.name!r} resolves to {address} on {named(hosts)}"
    elif not is_loopback(address):  # then it is the unspecified one
        target = f"{path.name!r} is an address to listen on, and means the machine itself to a client"
    else:
        target = f"{path.name!r} is loopback on {named(hosts)}"
    return Finding(
        severity,
        f"MASTER_ADDR {target}, "
        f"{why if len(hosts) > 1 else why.replace('each of these nodes looks', 'it looks')}",
        hosts,
        path_evidence(seen, "an address of node 0 that other nodes can reach"),
        (
            Fix(
                "set MASTER_ADDR to node 0's address on the network between the nodes, the same "
                f"{verb(hosts, 'as on the other nodes', 'everywhere')}",
                ("ip -brief address   # on node 0",),
            ),
        ),
    )
