"""NC223 hostname-shared."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.shared_hosts import Place, places
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.formats.prose import listed, plural
from ncclcheck.model.formats.shared_names import shared_names
from ncclcheck.model.snapshot import Snapshot

_NAMED = 8


@check("NC223", "hostname-shared", "No two nodes have the same host name", nodes=2)
def hostname_shared(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node has a host name of its own.

    ## Why it matters
    Logs, monitoring and lists of hosts cannot tell such nodes apart. torchrun compares host names to find out on which
    node its rendezvous is served, and NCCL takes containers of one machine that have the same host name for one host.
    This report adds the node rank to their names (`node#1`, `node#2`).

    ## How to fix
    Give each node or container a host name of its own (`hostnamectl set-hostname`, `docker run --hostname`).

    ## Source
    What each node says that it is called; torch/distributed/elastic/rendezvous/utils.py
    (_matches_machine_hostname); NCCL's getHostHash (src/misc/utils.cc).
    """
    shared = shared_names((node.host, node.node_rank) for node in snapshot.nodes)
    for name in sorted(set(shared.values())):
        yield _finding(name, {host: places(snapshot)[host] for host in shared if shared[host] == name})
    yield from not_reported(snapshot)


def _finding(name: str, place_of: dict[str, Place]) -> Finding:
    hosts = tuple(place_of)
    nodes = [
        f"{host} is {place.shown_address} (node rank {place.node_rank})" for host, place in place_of.items()
    ]
    return Finding(
        "warning",
        f"{plural(len(hosts), 'node')} call themselves {name}: {listed(nodes, _NAMED)}",
        hosts,
        tuple(
            Evidence((host,), "host name", name, "a name of its own", "gethostname(2)")
            for host in hosts[:_NAMED]
        ),
        (
            Fix(
                "give each node or container a host name of its own",
                ("sudo hostnamectl set-hostname NAME   # or docker run --hostname NAME",),
            ),
        ),
    )
