"""NC109 master-filtered."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.launch._master import (
    Sighting,
    first_address,
    hosts_of,
    master_finding,
    not_seen,
    saw,
    suspect_text,
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
    its timeout. It may drop the connection requests at node 0, or node 0's answers at the node that calls.

    ## How to fix
    Allow TCP to MASTER_PORT on node 0 from every node. NCCL and Gloo need more: all TCP ports of
    `net.ipv4.ip_local_port_range` between all nodes, in both directions. Where the answers are lost, the firewall of
    the node that calls has to accept packets of established connections.

    ## Source
    tcp(7): a SYN without any answer is sent again until the deadline; only dropped packets look like that. Which
    direction: the half-open connections in /proc/net/tcp of node 0 (state SYN_RECV). The ports: NCCL
    src/misc/socket.cc binds port 0.
    """
    seen = saw(snapshot, "filtered")
    blocked = tuple(sighting for sighting in seen if sighting.path.blocked_here)
    seen = tuple(sighting for sighting in seen if not sighting.path.blocked_here)
    lost = tuple(sighting for sighting in seen if sighting.path.answers_lost)
    unanswered = tuple(sighting for sighting in seen if not sighting.path.answers_lost)
    if blocked:
        yield _blocked_here(blocked)
    if lost:
        yield _answers_lost(lost)
    if unanswered:
        yield _finding(snapshot, unanswered)
    yield from not_seen(snapshot, "filtered")


def _blocked_here(seen: tuple[Sighting, ...]) -> Finding:
    hosts = hosts_of(seen)
    return master_finding(
        seen,
        f"{named(hosts)} got no answer from {seen[0].target}: {verb(hosts, 'its', 'their')} own firewall does not let "
        "packets to there out (the kernel rejects a datagram with EPERM)",
        "an answer",
        Fix(
            f"look for an OUTPUT rule on {named(hosts)}",
            (f"sudo nft list ruleset   # on {named(hosts)}, or: sudo iptables -S OUTPUT",),
        ),
    )


def _answers_lost(seen: tuple[Sighting, ...]) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    return master_finding(
        seen,
        f"{named(hosts)} got no answer from {seen[0].target}, though node 0 sees the connection requests and answers "
        f"them: a firewall on {named(hosts)}, or on the path to {verb(hosts, 'it', 'them')}, drops the answers; the "
        "port of node 0 is open",
        "an answer",
        _fix_of_answers(hosts, path),
    )


def _fix_of_answers(hosts: tuple[str, ...], path: MasterPath) -> Fix:
    return Fix(
        f"accept packets of established connections on {named(hosts)}",
        (
            f"sudo nft list ruleset   # on {named(hosts)}, or: sudo iptables -S",
            "sudo iptables -I INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT   # there, with iptables",
            f"ss -tn state syn-recv sport = :{path.port}   # on node 0: the requests that it has answered",
        ),
    )


def _finding(snapshot: Snapshot, seen: tuple[Sighting, ...]) -> Finding:
    hosts, path = hosts_of(seen), seen[0].path
    suspect = suspect_text(snapshot, seen)
    source = f", connecting from {_source(path)}" if len(seen) == 1 else ""
    # Only node 0's own report distinguishes the directions.
    is_told = (path.serving_confirmed and not path.confirmed_by_relay) or snapshot.viewpoint == "all"
    what = (
        "drops the port" if is_told else "drops the connection requests, or the answers to them on this node"
    )
    return master_finding(
        seen,
        f"{named(hosts)} got no answer from {seen[0].target}{source}: "
        f"a firewall or security group {what}" + (f"; {suspect}" if suspect else ""),
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
            "sudo nft list ruleset   # on node 0, and on the node that gets no answer; or: sudo iptables -S",
            f"sudo firewall-cmd --add-port={path.port}/tcp   # on node 0, with firewalld",
            f"sudo ufw allow {path.port}/tcp   # on node 0, with ufw",
        ),
        risk="opens the port to every machine that reaches node 0, unless the rule names the nodes",
    )
