"""NC122 resolver-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, not_reported, unread, verb
from ncclcheck.checks.launch._master import hosts_of, path_evidence, saw
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.timeouts import NAME_SERVER_WAIT_S


@check("NC122", "resolver-slow", "Every name server of /etc/resolv.conf answers", needs=("names",))
def resolver_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """Each name server in a node's /etc/resolv.conf answers a query within 2 s.

    ## Why it matters
    The C library asks the servers in their order, and waits 5 s for one that is silent before it asks the next. torch's
    store looks up the name of each node that connects to it, one after the other, and each node looks up several names
    when it joins. So a job of many nodes starts minutes late, or not before the timeout, though every name resolves.
    Names that are in /etc/hosts are not asked for.

    ## How to fix
    Take the silent server out of /etc/resolv.conf, or put it last. `options timeout:1 attempts:1` shortens the wait.
    Or give the names and addresses of all nodes in /etc/hosts. A node that could not join in time for this says so and
    ends with exit code 3 (inconclusive).

    ## Source
    resolv.conf(5): nameserver, timeout; torch/csrc/distributed/c10d/socket.cpp asks for names of addresses.
    """
    silent = {
        node.host: names.silent_servers for node, names in snapshot.known("names") if names.silent_servers
    }
    for servers in dict.fromkeys(silent.values()):
        yield _slow(snapshot, tuple(host for host in silent if silent[host] == servers), servers)
    stuck = saw(snapshot, "resolver-slow")
    if stuck:
        hosts = hosts_of(stuck)
        yield Finding(
            "warning",
            f"{named(hosts)} did not join in time, since {stuck[0].path.detail}",
            hosts,
            path_evidence(stuck, "an answer within seconds"),
            (_fix(),),
        )
    yield from unread(snapshot, "names")
    yield from not_reported(snapshot)


def _slow(snapshot: Snapshot, hosts: tuple[str, ...], servers: tuple[str, ...]) -> Finding:
    of_first = any(node.host in hosts and node.node_rank == 0 for node in snapshot.nodes)
    seconds = NAME_SERVER_WAIT_S * len(servers)
    cost = f"each look-up of a name that is not in /etc/hosts takes {seconds} s longer"
    if of_first and job_size(snapshot) > 1:
        nodes = job_size(snapshot)
        cost += f", and torch's store on node 0 makes one for each of {nodes} nodes: {nodes * seconds} s"
    shown = f"name server{'s' if len(servers) > 1 else ''} {named(servers)}"
    return Finding(
        "warning",
        f"the {shown} of {named(hosts)} {verb(servers, 'gives', 'give')} no answer: {cost}",
        hosts,
        tuple(
            Evidence(
                hosts, f"nameserver {server}", "no answer within 2 s", "an answer", "a query of this run"
            )
            for server in servers
        ),
        (_fix(*servers),),
    )


def _fix(*servers: str) -> Fix:
    return Fix(
        "take the silent server out of /etc/resolv.conf or put it last, or list all nodes in /etc/hosts",
        (
            "grep nameserver /etc/resolv.conf",
            *(f"time getent -s dns ahosts $(hostname)   # waits for {server}" for server in servers[:1]),
        ),
    )
