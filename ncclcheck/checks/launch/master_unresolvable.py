"""NC104 master-unresolvable."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.launch._master import first_address, hosts_of, master_finding, not_seen, saw, sightings
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC104", "master-unresolvable", "Every node can resolve MASTER_ADDR")
def master_unresolvable(snapshot: Snapshot) -> Iterator[Answer]:
    """The name in MASTER_ADDR resolves to an address on every node.

    ## Why it matters
    torch's TCPStore client retries a failed look-up until the store's timeout, so a typo in MASTER_ADDR looks like a
    hang of many minutes.

    ## How to fix
    Give the address of node 0 instead of a name, or a name that every node knows (DNS or /etc/hosts).

    ## Source
    torch/csrc/distributed/c10d/socket.cpp: the client repeats getaddrinfo until its deadline.
    """
    seen = saw(snapshot, "unresolvable")
    for name in dict.fromkeys(sighting.path.name for sighting in seen):
        failing = tuple(sighting for sighting in seen if sighting.path.name == name)
        hosts = hosts_of(failing)
        able = [
            sighting
            for sighting in sightings(snapshot)
            if sighting.path.name == name and first_address(sighting.path)
        ]
        bare = _bare(name)
        address = bare if bare != name else first_address(able[0].path) if able else None
        others = f" ({named(sighting.host for sighting in able)} can: {address})" if able else ""
        alone = "address without brackets" if name.startswith("[") else "name alone"
        fix = Fix(
            f"write the {alone}: {bare}"
            if bare != name
            else "use the address of node 0, or a name that every node can resolve",
            () if bare != name else (f"getent ahosts {shlex.quote(name)}",),
            {"MASTER_ADDR": address} if address else {},
        )
        found = master_finding(
            failing,
            f"{named(hosts)} cannot resolve MASTER_ADDR {name!r}{others}, so "
            f"{verb(hosts, 'it waits', 'they wait')} for node 0 until the timeout",
            "an address",
            fix,
        )
        yield replace(found, fixes=(fix,)) if bare != name else found
    yield from not_seen(snapshot, "unresolvable")


def _bare(name: str) -> str:
    """Return the name without what torch does not take: brackets, a scheme ("tcp://"), a dot at the end."""
    return name.rpartition("://")[2].removeprefix("[").removesuffix("]").removesuffix(".") or name
