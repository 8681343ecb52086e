"""NC904 hostname-resolution."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import is_of_cluster, names_in, unresolved, unresolved_hosts
from ncclcheck.checks.logs._view import culprits, failures, heads
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC904",
    "hostname-resolution",
    "A host name does not resolve",
    explains=(
        "firewall-blocked-ports",
        "world-size-mismatch",
        "master-addr-wrong",
        "loopback-interface",
        "slow-rank-timeout",
    ),
    fixes=(
        Fix(
            "make the name resolve on every node (DNS, /etc/hosts), or set MASTER_ADDR to an address",
            (
                "getent hosts NAME   # on every node",
                "ncclcheck preflight --select master-unresolvable,hostname-loopback",
            ),
        ),
    ),
)
def hostname_resolution(log: Log) -> Iterator[Suspect]:
    """A host name that the job needs does not resolve on at least one node.

    ## Why it matters
    The rank cannot try to connect. torch repeats the look-up until its timeout, and then reports the
    timeout only.

    ## How to fix
    Put the name into DNS or /etc/hosts of every node, or use addresses.

    ## Source
    getaddrinfo(3): EAI_NONAME, EAI_AGAIN; torch c10d/socket.cpp prints the gai error as a warning.
    """
    numeric = [failure for failure in failures(log, "store") if failure.address.isdecimal()]
    if numeric:
        yield suspect(
            f"The name of the master is a number ({numeric[0].address}), which is taken for an address and never "
            "looked up: give the host a name with a letter, or use its address.",
            numeric,
            confidence="likely",
            hosts=(numeric[0].address,),
            explains=("firewall-blocked-ports", "master-addr-wrong", "rank-exception"),
        )
        return
    found = [remark for remark in unresolved(log) if not is_of_cluster(log, remark)]
    if not found:
        return
    names = names_in(found)
    given_up = [failure for failure in failures(log, "store") if failure.final and failure.address in names]
    named = heads(sorted(names)) or "a host name"
    yield suspect(
        f"{named} does not resolve on at least one node.",
        [*found, *given_up],
        confidence="certain" if given_up or not failures(log) else "likely",
        hosts=unresolved_hosts(log, found, culprits(log, [event.place for event in given_up or found])),
    )
