"""NC111 master-foreign."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._master import (
    Sighting,
    another_port,
    first_address,
    hosts_of,
    is_port_held,
    master_answers,
    master_finding,
    not_seen,
    saw,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check("NC111", "master-foreign", "Node 0 of this job answers at the master port")
def master_foreign(snapshot: Snapshot) -> Iterator[Answer]:
    """The program that accepts connections at MASTER_ADDR:MASTER_PORT is the store of this job.

    ## Why it matters
    A web server, a proxy, an ssh tunnel or the store of another job accepts the connection but does not answer as
    this job's store. The job hangs, or its ranks join another job.

    ## How to fix
    Choose another MASTER_PORT on every node, or correct MASTER_ADDR. Where only some nodes meet a stranger, exclude the
    job's ports from the proxy on their path, such as the sidecar of a service mesh.

    ## Source
    ncclcheck's own rule: nothing is trusted that does not speak the store's protocol for this job.
    """
    seen = saw(snapshot, "foreign")
    if seen and is_port_held(snapshot, seen[0].path.port):
        yield NotKnown("another program holds the port of node 0: see master-port-in-use", hosts_of(seen))
        yield from not_seen(snapshot, "foreign")
        return
    yield from master_answers(snapshot, "foreign", _finding)


def _finding(snapshot: Snapshot, seen: tuple[Sighting, ...]) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    detail = f" ({path.detail})" if path.detail else ""
    through = [
        sighting
        for sighting in saw(snapshot, "answered")
        if sighting.node_rank != 0
        and (sighting.path.port, first_address(sighting.path)) == (path.port, first_address(path))
    ]
    if through:
        return _intercepted(seen, named(sighting.host for sighting in through))
    return master_finding(
        seen,
        f"a program that is not this job's store answers {named(hosts)} at {seen[0].target}{detail}: "
        "the job would hang there, or join another job",
        "the store of this job",
        Fix(
            "choose another MASTER_PORT on every node, or correct MASTER_ADDR",
            (f"ss -ltnp 'sport = :{path.port}'   # on the machine with that address",),
            {"MASTER_PORT": str(another_port(path.port))},
        ),
    )


def _intercepted(seen: tuple[Sighting, ...], others: str) -> Finding:
    """Return the finding about nodes that meet a stranger at the address and port where others met node 0."""
    hosts, path = hosts_of(seen), seen[0].path
    return master_finding(
        seen,
        f"a program that is not this job's store answers {named(hosts)} at {seen[0].target} ({path.detail}), where "
        f"{others} reached node 0: a proxy takes the connections of {named(hosts)} (the sidecar of a service mesh, "
        "NAT), or another machine has that address",
        "the store of this job",
        Fix(
            f"on {named(hosts)}: exclude the job's ports from the proxy; in Kubernetes, start the pods without a "
            'sidecar (annotation sidecar.istio.io/inject: "false")',
            (
                "sudo iptables -t nat -S | grep -e REDIRECT -e DNAT",
                f"ip neighbour show {first_address(path)}   # compare with the other nodes",
            ),
        ),
    )
