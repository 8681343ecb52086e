"""NC108 master-refused."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._master import Sighting, hosts_of, master_finding, not_seen, saw, suspect_text
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC108", "master-refused", "No node is refused at the master port")
def master_refused(snapshot: Snapshot) -> Iterator[Answer]:
    """Connections to MASTER_ADDR:MASTER_PORT are accepted, not refused.

    ## Why it matters
    A refusal is an answer: the packet arrived, and either no program listens on that port now, or a firewall rejects
    it. ncclcheck repeats refused attempts until the join deadline, since node 0 may start later. A node that is refused
    by datagram too, and gets no answer from node 0 anywhere, names the master's host, since nothing is wrong with
    itself.

    ## How to fix
    Check that node 0 runs and listens (`ss -ltn`), that it was started with this address and port, and that no
    firewall has a REJECT rule with tcp-reset.

    ## Source
    tcp(7), connect(2): ECONNREFUSED is the answer RST, or ICMP port unreachable.
    """
    seen = saw(snapshot, "refused")
    hopeless = tuple(sighting for sighting in seen if sighting.path.not_served)
    seen = tuple(sighting for sighting in seen if not sighting.path.not_served)
    if hopeless:
        yield _not_served(hopeless)
    served = tuple(sighting for sighting in seen if sighting.path.serving_confirmed)
    unserved = tuple(sighting for sighting in seen if not sighting.path.serving_confirmed)
    if served:
        yield _finding(
            snapshot,
            served,
            "although node 0 serves there: a firewall or NAT rejects the connection",
        )
    absent = tuple(sighting for sighting in unserved if sighting.path.nobody_there)
    if absent and snapshot.viewpoint == "one-node":  # else node 0 is there, and has heard of it
        yield _absent(absent)
    elif unserved:
        yield _finding(snapshot, unserved, _nobody_listens(snapshot))
    yield from not_seen(snapshot, "refused")


def _not_served(seen: tuple[Sighting, ...]) -> Finding:
    why = seen[0].path.not_served
    return master_finding(
        seen,
        f"{named(hosts_of(seen))} got connection refused from {seen[0].target}, because node 0 does not serve there: "
        f"it says that {why}",
        "accepted",
        Fix("fix what node 0 reports"),
    )


def _absent(seen: tuple[Sighting, ...]) -> Finding:
    """Return the finding about the master's host: nothing is known against a node that finds nobody there."""
    path = seen[0].path
    found = master_finding(
        seen,
        f"node 0 is not there: {named(hosts_of(seen))} got connection refused from {seen[0].target} until the end, "
        "datagrams to that port are refused too, and node 0 answers nowhere else: its process was not started or "
        "has ended, MASTER_ADDR names another machine, or a firewall there rejects everything",
        "accepted",
        Fix(
            f"on {path.name}: check that node 0 was started there and still runs, and read its output",
            (f"ss -ltnp 'sport = :{path.port}'   # on {path.name}",),
        ),
    )
    return replace(found, hosts=(path.name,))


def _nobody_listens(snapshot: Snapshot) -> str:
    owners = tuple(sighting for sighting in saw(snapshot, "not-first-node") if sighting.node_rank != 0)
    if owners:
        return f"because the address belongs to {named(hosts_of(owners))} and not to node 0"
    return "so no program listens there now, or a firewall rejects it"


def _finding(snapshot: Snapshot, seen: tuple[Sighting, ...], why: str) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    suspect = suspect_text(snapshot, seen)
    return master_finding(
        seen,
        f"{named(hosts)} got connection refused from {seen[0].target}, {why}"
        + (f"; {suspect}" if suspect else ""),
        "accepted",
        Fix(
            "on node 0: check which program listens on the port, and look for a REJECT rule",
            (f"ss -ltnp 'sport = :{path.port}'", "sudo nft list ruleset | grep -n reject"),
        ),
    )
