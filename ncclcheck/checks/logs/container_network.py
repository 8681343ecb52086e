"""NC910 container-network."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, is_container, tried
from ncclcheck.checks.logs._view import culprits, remarks, settings
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_FIXES = (
    Fix(
        "use the host network (docker run --network host; hostNetwork: true), or an overlay network that "
        "both containers share; publishing single ports (-p) is not enough",
        (
            "ip -brief address   # inside the container",
            "ncclcheck preflight --select interface-virtual,address-duplicate,peer-refused",
        ),
    ),
)


@cause("NC910", "container-network", "Containers and hosts had a network that others reach")
def container_network(log: Log) -> Iterator[Suspect]:
    """This container or host has no interface that other nodes can reach: none at all, or only a private bridge.

    ## Why it matters
    On Docker's default bridge every container has 172.17.0.x, which means nothing on another machine.

    ## How to fix
    Start the containers with the host's network, or an overlay that all nodes share.

    ## Source
    Docker's default bridge 172.17.0.0/16; NCCL bootstrap.cc (`no socket interface found`).
    """
    none = [
        one
        for one in remarks(log, "no-interface")
        if not one.values.get("interface") and "same subnet" not in one.text
    ]
    if none and not settings(log, "NCCL_SOCKET_IFNAME") and not remarks(log, "no-subnet"):
        yield suspect(
            "There is no usable network interface in this container or on this host.",
            none,
            hosts=culprits(log, [one.place for one in none]),
            explains=("ifname-missing", "rank-exception", "world-size-mismatch"),
            fixes=_FIXES,
        )
    bound = [one for one in remarks(log, "bind-elsewhere") if "server socket" not in one.text]
    if bound and remarks(log, "no-subnet"):
        yield suspect(
            "The ranks are told to use an address that no interface of this container has.",
            [*bound, *remarks(log, "no-subnet")],
            hosts=culprits(log, [one.place for one in bound]),
            explains=("master-addr-wrong", "stale-config", "rank-exception"),
            fixes=_FIXES,
        )
    inside = [one for one in log.processes if is_container(one)]
    failed = [one for one in tried(log) if one.layer != "store"]
    if inside and failed:
        yield suspect(
            f"The ranks run in containers on a private bridge ({inside[0].interface}:{inside[0].address}), "
            "which other nodes cannot reach.",
            [*(as_line(one, f"Using {one.interface}:{one.address}") for one in inside[:2]), *failed],
            confidence="likely",
            explains=("firewall-blocked-ports", "wrong-interface", "rank-exception", "world-size-mismatch"),
            fixes=_FIXES,
        )
