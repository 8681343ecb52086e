"""NC903 master-addr-wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

from ncclcheck.checks.logs._causes import Confidence, Suspect, cause, suspect
from ncclcheck.checks.logs._loopback_masters import (
    cluster_at_loopback,
    endpoint_at_loopback,
    init_at_loopback,
    later_node_at_loopback,
    master_in,
    store_at_loopback,
)
from ncclcheck.checks.logs._network import UNANSWERED, missed_by_all, unmade
from ncclcheck.checks.logs._view import (
    culprits,
    exceptions,
    failures,
    heads,
    hosts_of,
    is_local,
    path_ends,
    registered,
    remarks,
    timeouts,
    troubles,
)
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import ConnectFailure, Log
from ncclcheck.model.finding import Fix
from ncclcheck.model.formats.addresses import parsed

_LOOPBACK = re.compile(r"\b(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}):\d")
_NO_HOST = re.compile(r" at address :\d")
_MANY_TRIES = 3
_FREE_PORTS = 32768  # the first that Linux gives away by itself


@cause(
    "NC903",
    "master-addr-wrong",
    "The master address is wrong",
    explains=("firewall-blocked-ports", "world-size-mismatch", "loopback-interface", "hostname-resolution"),
    fixes=(
        Fix(
            "set MASTER_ADDR (--master-addr, --rdzv-endpoint) to the address of the first node on the job's "
            "network, the same on every node, never localhost in a multi-node job",
            (
                "getent hosts $MASTER_ADDR   # on every node",
                "ncclcheck preflight --select master-loopback,master-not-first-node,master-no-route",
            ),
        ),
    ),
)
def master_addr_wrong(log: Log) -> Iterator[Suspect]:
    """The master or rendezvous address is wrong: loopback, another machine, or an address that nobody has.

    ## Why it matters
    Ranks on other nodes then look for the store on themselves, or nowhere; the first node waits for them in
    vain.

    ## How to fix
    Set MASTER_ADDR or --rdzv-endpoint to an address of node 0 that all nodes can reach, the same on all.

    ## Source
    torch c10d/socket.cpp and TCPStore.cpp; torch/distributed/elastic/rendezvous.
    """
    elsewhere = [remark for remark in remarks(log, "bind-elsewhere") if "server socket" in remark.text]
    if elsewhere:
        yield suspect(
            "Rank 0 cannot listen at the master address: no interface of its node has that address.",
            elsewhere,
            hosts=culprits(log, [remark.place for remark in elsewhere]) or ("rank 0",),
        )
        return
    store = failures(log, "store")
    local = [failure for failure in store if is_local(failure.address)]
    # Every start has connections that are retried and then succeed.
    local = [failure for failure in local if failure.final] and local
    if local:
        yield suspect(
            f"The master address is loopback ({local[0].address}): ranks on other nodes look for the store on "
            "their own machine.",
            local,
            confidence=_sure_of_loopback(log, local),
            hosts=culprits(log, [failure.place for failure in local]),
        )
        return
    if nowhere := [failure for failure in store if failure.final and _is_no_machine(failure.address)]:
        yield suspect(
            f"The master address {nowhere[0].address} is no address of a machine: it looks like a netmask, or is one "
            "for groups.",
            nowhere,
            explains=("firewall-blocked-ports", "world-size-mismatch", "slow-rank-timeout", "rank-exception"),
        )
        return
    yield from (
        store_at_loopback(log)
        or endpoint_at_loopback(log)
        or _stale(log)
        or _head_is_nowhere(log)
        or init_at_loopback(log)
        or later_node_at_loopback(log)
        or _different_masters(log)
        or _guessed(log)
        or cluster_at_loopback(log)
    )
    yield from _unread_endpoint(log)
    yield from _unreached(log, store)


def _is_no_machine(address: str) -> bool:
    """Return True for what no machine can have: a multicast, reserved or netmask address of IPv4 (RFC 1112, 6890)."""
    try:
        known = parsed(address.removeprefix("::ffff:"))
    except ValueError:
        return False  # a name
    return isinstance(known, IPv4Address) and (known.is_multicast or known.is_reserved)


def _unread_endpoint(log: Log) -> Iterator[Suspect]:
    """Yield torchrun's start with c10d and a master address, which it does not read: each node meets itself alone."""
    unread = remarks(log, "endpoint-not-given")
    alone = [event for event in exceptions(log, "after-effect") if "Rendezvous" in event.class_name]
    if unread and alone:
        yield suspect(
            "torchrun with --rdzv-backend=c10d does not read --master-addr: without --rdzv-endpoint each node waits "
            "at its own address, where the others never come.",
            [*unread, *alone],
            confidence="likely",
            hosts=(),
            explains=("firewall-blocked-ports", "world-size-mismatch", "slow-rank-timeout"),
        )


def _different_masters(log: Log) -> list[Suspect]:
    """Return the hosts with different masters, where some waited for others in vain."""
    configured = [
        remark
        for remark in remarks(log, "master-address", "init-method", "rdzv-endpoint")
        if remark.place.host is not None
    ]
    by_host = {remark.place.host or "": (master_in(remark), remark) for remark in configured}
    masters = {master for master, _ in by_host.values()}
    vain = [
        *(count for count in registered(log) if count.joined < count.expected),
        *(event for event in exceptions(log, "after-effect") if "Rendezvous" in event.class_name),
        *(failure for failure in unmade(log) if failure.layer == "store"),
    ]
    if len(masters) == 1 or not by_host or not vain or any(map(is_local, masters)):
        return []
    is_own = all(master == host for host, (master, _) in by_host.items())
    return [
        suspect(
            "Each node takes itself for the master, so each waits alone."
            if is_own
            else "The nodes were told different masters: "
            + ", ".join(f"{master} on {host}" for host, (master, _) in list(by_host.items())[:4])
            + ".",
            [*(remark for _, remark in by_host.values()), *vain],
            confidence="likely",
            hosts=culprits(log, [event.place for event in vain if isinstance(event, ConnectFailure)]),
        )
    ]


def _guessed(log: Log) -> list[Suspect]:
    """Return the store at the address that DeepSpeed guessed, where the job has another one and no process joined."""
    guesses = remarks(log, "launcher-address")
    configured = {remark.values["address"] for remark in remarks(log, "told-master")}
    missed = [
        failure
        for failure in unmade(log)
        if failure.layer == "store"
        and failure.address in {guess.values["address"] for guess in guesses} - configured
    ]
    if not configured or not missed:
        return []
    return [
        suspect(
            f"The ranks look for the store at {missed[0].address}, the address that DeepSpeed's launcher took, and not "
            f"at {heads(sorted(configured))}, which the configuration names: give it with --master_addr.",
            [*guesses, *missed],
            confidence="likely",
            hosts=culprits(log, [failure.place for failure in missed]),
        )
    ]


def _stale(log: Log) -> list[Suspect]:
    """Return the connections to another port of the host than the one where the job's coordinator listens."""
    listens = {(remark.values["address"], remark.values["port"]) for remark in remarks(log, "coordinator-at")}
    hosts = {address for address, _ in listens}
    stale = [
        failure
        for failure in failures(log)
        if failure.address in hosts and (failure.address, str(failure.port)) not in listens
    ]
    if not stale:
        return []
    return [
        suspect(
            f"The coordinator listens at another port of {stale[0].address} than {stale[0].port}, where others look "
            "for it: that address is of an earlier attempt.",
            [*stale, *remarks(log, "coordinator-at")],
            confidence="likely",
            hosts=(stale[0].address,),
            explains=("firewall-blocked-ports", "world-size-mismatch", "rank-exception", "slow-rank-timeout"),
        )
    ]


def _head_is_nowhere(log: Log) -> list[Suspect]:
    """Return the workers of Ray that look for its head on their own machine, or at no address, and find none."""
    failures = [
        remark
        for remark in remarks(log, "message")
        if remark.values.get("group") in ("ray-head-silent", "ray-no-head", "ray-head-not-reached")
        and (_LOOPBACK.search(remark.text) or _NO_HOST.search(remark.text))
    ]
    if not failures:
        return []
    where = (
        "at no address: the variable that is to name the head is empty"
        if _NO_HOST.search(failures[0].text)
        else "at a loopback address, which is its own machine"
    )
    return [
        suspect(
            f"A worker looks for Ray's head {where}.",
            failures,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in failures]),
            explains=("firewall-blocked-ports", "world-size-mismatch", "rank-exception"),
        )
    ]


def _is_all_refused(log: Log, tries: Sequence[ConnectFailure]) -> bool:
    """Return True if one place refused all of many tries, and nothing shows that the store answered later."""
    places = {(attempt.address, attempt.port, attempt.reason) for attempt in tries}
    met_later = (
        log.processes or timeouts(log) or remarks(log, "nccl-banner", "generic-nccl") or shows_work(log)
    )
    refused = len(tries) >= _MANY_TRIES and places == {(tries[0].address, tries[0].port, "refused")}
    return refused and not met_later and bool(troubles(log))


def _sure_of_loopback(log: Log, local: Sequence[ConnectFailure]) -> Confidence:
    """Return how sure it is that the job has several nodes: on one a loopback address is right.

    A launcher takes a free port, a high number, where it starts all ranks itself.
    """
    if len(hosts_of(log)) > 1 or remarks(log, "rdzv-endpoint", "first-node", "master-address", "kubernetes"):
        return "certain"
    return "possible" if all((failure.port or 0) >= _FREE_PORTS for failure in local) else "likely"


def _unreached(log: Log, store: tuple[ConnectFailure, ...]) -> Iterator[Suspect]:
    """The master address is another machine's, or nobody's."""
    configured = {
        remark.values.get("address") or remark.values.get("master", "")
        for remark in remarks(log, "rdzv-endpoint")
    }
    # A master address has no port, and an endpoint may have one: then only the hosts can be compared.
    endpoints = (
        {place.partition(":")[0] for place in configured}
        if any(":" not in place for place in configured)
        else configured
    )
    remote = [failure for failure in unmade(log) if failure.layer == "store"]
    tries = [
        failure
        for failure in store
        if not failure.final and failure.reason in ("no-route", "unreachable", "refused")
    ]
    if remote and len(endpoints) > 1:
        yield suspect(
            f"The nodes were given different rendezvous endpoints ({heads(sorted(endpoints))}).",
            [*remote, *remarks(log, "rdzv-endpoint")],
            hosts=culprits(log, [failure.place for failure in remote]),
        )
    elif remote and any(failure.reason == "refused" for failure in tries):
        yield suspect(
            f"No process listens at the master address {remote[0].address}:{remote[0].port}: it is another "
            "machine, or rank 0 never started.",
            [*tries, *remote, *registered(log)],
            confidence="likely",
            hosts=path_ends(log, remote),
        )
    elif not remote and _is_all_refused(log, tries):
        yield suspect(
            f"The master address {tries[0].address}:{tries[0].port} refuses every connection in the log: no process "
            "listens there. It is another machine, or rank 0 never started there.",
            [*tries, *registered(log)],
            confidence="likely",
            hosts=path_ends(log, tries),
        )
    elif remote and (remarks(log, "first-node") or missed_by_all(log, remote)):
        yield suspect(
            f"The first node itself cannot reach the master address {remote[0].address}:{remote[0].port}: it is the "
            "address of another machine, or of none.",
            [*remote, *remarks(log, "first-node")],
            confidence="likely",
            hosts=path_ends(log, remote),
        )
    elif remote and any(failure.reason in UNANSWERED for failure in tries):
        yield suspect(
            f"The master address {remote[0].address} cannot be reached from here.",
            [*tries, *remote],
            confidence="possible",
            hosts=path_ends(log, remote),
            explains=(),
        )
