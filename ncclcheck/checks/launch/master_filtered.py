"""NC109 master-filtered."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._master import (
    Sighting,
    first_address,
    hosts_of,
    master_answers,
    master_finding,
    others_came,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC109", "master-filtered", "No firewall drops connections to the master port")
def master_filtered(snapshot: Snapshot) -> Iterator[Answer]:
    """Connections to MASTER_ADDR:MASTER_PORT get an answer.

    ## Why it matters
    A firewall or security group that drops packets causes no error: `init_process_group` waits without output until
    its timeout.

    ## How to fix
    Allow TCP to MASTER_PORT on node 0 from every node. NCCL and Gloo need more: all TCP ports of
    `net.ipv4.ip_local_port_range` between all nodes, in both directions.

    ## Source
    tcp(7): a SYN without any answer is sent again until the deadline; only dropped packets look like that. The ports:
    NCCL src/misc/socket.cc binds port 0.
    """
    yield from master_answers(snapshot, "filtered", _finding)


def _finding(snapshot: Snapshot, seen: tuple[Sighting, ...]) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    suspect = others_came(snapshot, seen)
    source = f", connecting from {_source(path)}" if len(seen) == 1 else ""
    return master_finding(
        seen,
        f"{named(hosts)} got no answer from {seen[0].target}{source}: "
        "a firewall or security group drops the port" + (f"; {suspect}" if suspect else ""),
        "an answer",
        _fix(path),
    )


def _source(path: MasterPath) -> str:
    address = "an unknown address" if isinstance(path.source_address, Missing) else path.source_address
    return address if isinstance(path.interface, Missing) else f"{address} ({path.interface})"


def _fix(path: MasterPath) -> Fix:
    address = first_address(path) or path.name
    return Fix(
        f"allow TCP port {path.port}, and the ephemeral ports that NCCL uses, between all nodes",
        (
            f"nc -vz -w 3 {address} {path.port}   # on the node that gets no answer",
            "sudo nft list ruleset   # on node 0, or: sudo iptables -S",
            f"sudo firewall-cmd --add-port={path.port}/tcp   # on node 0, with firewalld",
            f"sudo ufw allow {path.port}/tcp   # on node 0, with ufw",
        ),
        risk="opens the port to every machine that reaches node 0, unless the rule names the nodes",
    )
