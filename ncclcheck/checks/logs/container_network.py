"""NC910 container-network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, is_container, is_on_docker_bridge, tried
from ncclcheck.checks.logs._view import culprits, exceptions, failures, remarks, settings, troubles
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_OF_DOCKER = re.compile(r"'172\.17\.\d{1,3}\.\d{1,3}'")


@cause(
    "NC910",
    "container-network",
    "A container or host has no network that other nodes can reach",
    explains=("ifname-missing", "rank-exception", "world-size-mismatch"),
    between_nodes=True,
    fixes=(
        Fix(
            "use the host network (docker run --network host; hostNetwork: true), or an overlay network that "
            "both containers share; publishing single ports (-p) is not enough",
            (
                "ip -brief address   # inside the container",
                "ncclcheck preflight --select interface-virtual,address-duplicate,peer-refused",
            ),
        ),
    ),
)
def container_network(log: Log) -> Iterator[Suspect]:
    """This container or host has no interface that other nodes can reach: none at all, or only a private bridge.

    ## Why it matters
    On Docker's default bridge every container has 172.17.0.x, which no other machine can reach.

    ## How to fix
    Start the containers with the host's network, or an overlay that all nodes share.

    ## Source
    Docker's default bridge 172.17.0.0/16.
    """
    none = [remark for remark in remarks(log, "no-interface") if not remark.values.get("interface")]
    if none and not settings(log, "NCCL_SOCKET_IFNAME") and not remarks(log, "no-subnet"):
        yield suspect(
            "If NCCL_SOCKET_IFNAME is not set there, this container or host has no network interface but loopback.",
            none,
            confidence="possible",
            hosts=culprits(log, [remark.place for remark in none]),
        )
    bare = remarks(log, "interfaces-none")
    if bare and not settings(log, "NCCL_SOCKET_IFNAME"):
        yield _without_any(log, bare)
    bound = [remark for remark in remarks(log, "bind-elsewhere") if "server socket" not in remark.text]
    if bound and remarks(log, "no-subnet"):
        yield suspect(
            "The job's address belongs to no interface of this container.",
            [*bound, *remarks(log, "no-subnet")],
            hosts=culprits(log, [remark.place for remark in bound]),
            explains=("master-addr-wrong", "stale-config", "rank-exception"),
        )
    bridged = [
        failure
        for failure in (*failures(log, "store"), *failures(log, "other"))
        if (failure.final or troubles(log)) and is_on_docker_bridge(failure.address)
    ]
    if bridged:
        yield suspect(
            f"{bridged[0].address} is an address of Docker's default bridge, which other machines cannot reach.",
            bridged,
            confidence="likely",
            hosts=(bridged[0].address,),
            explains=("firewall-blocked-ports", "master-addr-wrong", "rank-exception", "world-size-mismatch"),
        )
    if offered := _offered(log):
        yield offered
        return
    inside = [process for process in log.processes if is_container(process)]
    failed = [failure for failure in tried(log) if failure.layer != "store"]
    if inside and failed:
        yield suspect(
            f"The ranks run in containers on a private bridge ({inside[0].interface}:{inside[0].address}), "
            "which other nodes cannot reach.",
            [
                *(as_line(process, f"Using {process.interface}:{process.address}") for process in inside[:2]),
                *failed,
            ],
            confidence="likely",
            explains=("firewall-blocked-ports", "wrong-interface", "rank-exception", "world-size-mismatch"),
        )


def _offered(log: Log) -> Suspect | None:
    """Return that Horovod's processes offer each other addresses of Docker's default bridge."""
    offered = [
        event
        for event in exceptions(log)
        if "communication interfaces" in event.text and _OF_DOCKER.search(event.text)
    ]
    if not offered:
        return None
    return suspect(
        "The processes offer each other addresses of Docker's default bridge, which other machines cannot reach.",
        offered,
        hosts=(),
        explains=("wrong-interface", "firewall-blocked-ports", "rank-exception"),
    )


def _without_any(log: Log, bare: Sequence[Remark]) -> Suspect:
    """Return that a host has no interface but loopback."""
    return suspect(
        "This container or host has no network interface but loopback.",
        bare,
        confidence="likely",
        hosts=culprits(log, [remark.place for remark in bare]),
        explains=("rank-exception", "rdma-userspace-missing", "slow-rank-timeout"),
    )
