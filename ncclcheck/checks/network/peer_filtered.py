"""NC209 peer-filtered."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.network._peers import peer_answers
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot

_FIX = Fix(
    "allow all TCP ports of net.ipv4.ip_local_port_range between all nodes, in both directions",
    (
        "sysctl net.ipv4.ip_local_port_range   # on every node: keep it the same",
        "sudo nft list ruleset   # or: sudo iptables -S",
        "sudo firewall-cmd --zone=trusted --add-source=SUBNET   # with firewalld",
    ),
    risk="opens these ports to every machine in the rule: list only the nodes",
)


@check(
    "NC209",
    "peer-filtered",
    "No firewall drops connections between nodes",
    needs=("interfaces",),
    nodes=2,
    joined=True,
)
def peer_filtered(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node gets an answer from every other node, on the interface that NCCL uses and on ephemeral ports.

    Five ports of each node are tried, four of them spread over `net.ipv4.ip_local_port_range`, so that a firewall that
    opens only a part of it is seen. With more than 64 nodes they are tried within the sample.

    ## Why it matters
    NCCL and Gloo listen on ports that the kernel picks. A firewall that allows only the master port lets the nodes
    rendezvous and drops all other connections: the job hangs in its first collective, without an error.

    ## How to fix
    Allow all TCP ports of `net.ipv4.ip_local_port_range` between the nodes, in both directions. On AWS: a security
    group that allows all traffic from itself.

    ## Source
    NCCL src/misc/socket.cc binds port 0 on the chosen address; there is no NCCL setting for a port range.
    """
    yield from peer_answers(
        snapshot, "filtered", "connections get no answer, so a firewall or security group drops them", _FIX
    )
