"""NC904 hostname-resolution."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import is_of_cluster, names_in, unresolved, unresolved_hosts
from ncclcheck.checks.logs._view import culprits, failures, heads, remarks
from ncclcheck.model.events import Event, Log
from ncclcheck.model.finding import Fix

# inet_aton(3) takes a number for an address, and prints it as one of the network 0, which no machine is in
_OF_NETWORK_0 = re.compile(r"(?<![\d.])0(?:\.\d{1,3}){3}(?![\d.])")
_NOBODYS = "0.0.0.0"  # noqa: S104 (compared, not bound)


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
    if numbers := _names_that_are_numbers(log):
        known_as = numbers[0][1]
        yield suspect(
            f"The name of a host is a number ({heads(known_as)}), which is taken for an address and never "
            "looked up: give the host a name with a letter, or use its address.",
            [line for line, _ in numbers],
            confidence="likely",
            hosts=known_as,
            explains=("firewall-blocked-ports", "master-addr-wrong", "rank-exception", "ifname-missing"),
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


def _names_that_are_numbers(log: Log) -> list[tuple[Event, tuple[str, ...]]]:
    """Return the lines in which the name of a host was taken for an address, with that name, and the address."""
    found: list[tuple[Event, tuple[str, ...]]] = []
    for failure in failures(log, "store"):
        if failure.address.isdecimal():
            found.insert(0, (failure, (failure.address,)))
        elif names := _number_and_address(failure.address):
            found.append((failure, names))
    for remark in remarks(log, "no-interface"):
        if names := _number_and_address(remark.text):
            found.append((remark, names))
    return found


def _number_and_address(text: str) -> tuple[str, ...]:
    """Return the number that is shown in the text as an address, and that address."""
    match = _OF_NETWORK_0.search(text)
    if match is None or match[0] == _NOBODYS:
        return ()
    number = 0
    for part in match[0].split("."):
        number = number * 256 + int(part)
    return (str(number), match[0])
