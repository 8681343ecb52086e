"""NC107 master-port-in-use."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.launch._master import Sighting, another_port, master_finding, not_seen, saw
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC107", "master-port-in-use", "Node 0 can listen on MASTER_PORT")
def master_port_in_use(snapshot: Snapshot) -> Iterator[Answer]:
    """MASTER_PORT is free on node 0, and node 0 may open it.

    ## Why it matters
    Rank 0 fails with "Address already in use", or, worse, the other ranks connect to the program that holds the port
    (often a process left over from the last job) and wait there.

    ## How to fix
    End the process that holds the port, or choose another MASTER_PORT, the same on every node. Ports below 1024
    (`net.ipv4.ip_unprivileged_port_start`) need a privilege.

    ## Source
    bind(2): EADDRINUSE, EACCES; Linux Documentation/networking/ip-sysctl.rst (ip_unprivileged_port_start).
    """
    for sighting in saw(snapshot, "port-in-use", "port-denied"):
        yield _finding(sighting)
    yield from not_seen(snapshot, "port-in-use")


def _finding(sighting: Sighting) -> Finding:
    path = sighting.path
    detail = f" ({path.detail})" if path.detail else ""
    if path.outcome == "port-denied":
        what = (
            f"{sighting.host} may not listen on MASTER_PORT {path.port}{detail}, so it cannot serve the store"
        )
        fix = Fix(
            "choose a MASTER_PORT of 1024 or more, the same on every node", env={"MASTER_PORT": "29500"}
        )
    else:
        what = f"MASTER_PORT {path.port} is already in use on {sighting.host}{detail}, so the job cannot start there"
        fix = Fix(
            "end the process that holds the port, or choose another MASTER_PORT on every node",
            (f"ss -ltnp 'sport = :{path.port}'",),
            {"MASTER_PORT": str(another_port(path.port))},
            "the other port may be in use too: run ncclcheck again",
        )
    return master_finding((sighting,), what, "a free port", fix)
