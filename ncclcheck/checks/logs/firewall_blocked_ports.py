"""NC901 firewall-blocked-ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import UNANSWERED, unmade, virtual_processes
from ncclcheck.checks.logs._view import both_ends, culprits, heads, hosts_of_address, path_ends, registered
from ncclcheck.model.events import ConnectFailure, Log
from ncclcheck.model.finding import Fix


@cause(
    "NC901",
    "firewall-blocked-ports",
    "A firewall blocks connections between the nodes",
    explains=("world-size-mismatch", "slow-rank-timeout"),
    between_nodes=True,
    fixes=(
        Fix(
            "allow TCP between the nodes on the master port and on the ephemeral port range (firewall, "
            "iptables/nftables, security group); check it with ncclcheck on both nodes",
            (
                "iptables -S; nft list ruleset; firewall-cmd --list-all",
                "ncclcheck preflight --select master-filtered,peer-filtered,peer-one-way",
                "sysctl net.ipv4.ip_local_port_range",
            ),
        ),
    ),
)
def firewall_blocked_ports(log: Log) -> Iterator[Suspect]:
    """Connections between nodes get no answer, or are rejected: a firewall or security group blocks the ports.

    ## Why it matters
    The rendezvous needs one port, NCCL and Gloo any port of the ephemeral range between all nodes; what is
    dropped looks like a hang.

    ## How to fix
    Allow all TCP ports between the nodes of the job, or at least net.ipv4.ip_local_port_range.

    ## Source
    connect(2): ETIMEDOUT where packets are dropped, EHOSTUNREACH where they are rejected; NCCL misc/socket.cc,
    gloo transport/tcp, torch c10d/socket.cpp.
    """
    given_up = unmade(log)
    found = [failure for failure in given_up if failure.reason in UNANSWERED]
    refused = [
        failure
        for failure in given_up
        if failure.reason == "refused"
        and failure.layer in ("nccl", "gloo")
        and failure.place.host not in hosts_of_address(log, failure.address)  # itself: its process ended
    ]
    targets = heads(f"{failure.address}:{failure.port}" for failure in found or refused)
    if found:
        yield suspect(
            f"Connections to {targets} get no answer: a firewall between the nodes drops or rejects them.",
            [*found, *registered(log)],
            confidence="likely",
            hosts=path_ends(log, found),
            explains=("k8s-dns-or-mesh", "world-size-mismatch", "slow-rank-timeout")
            if _to_itself(log, found)
            else None,
        )
    elif refused and not virtual_processes(log) and _may_be_filtered(log, refused):
        yield suspect(
            f"Connections to {targets} are refused: a firewall rejects them, or the process there ended.",
            refused,
            confidence="likely",
            hosts=both_ends(log, refused) or culprits(log, [failure.place for failure in refused]),
            explains=(),
        )


def _may_be_filtered(log: Log, refused: Sequence[ConnectFailure]) -> bool:
    """Return True if the log has lines of a host at one of the addresses, or the kernel gave no reason (aborted).

    Of a plain refusal by a machine that the log does not know nobody can tell whether a firewall sent it, the process
    there had ended, or the address is of a machine that is not of the job.
    """
    return any("refused" not in failure.text or hosts_of_address(log, failure.address) for failure in refused)


def _to_itself(log: Log, found: Sequence[ConnectFailure]) -> bool:
    """Return True if a node does not even reach its own address: the filter is on the node itself."""
    return any(failure.place.host in hosts_of_address(log, failure.address) for failure in found)
