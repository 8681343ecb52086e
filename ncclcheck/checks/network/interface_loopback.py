"""NC203 interface-loopback."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import Chosen, chosen, not_chosen
from ncclcheck.checks.hosts import job_size, named
from ncclcheck.checks.ifname_settings import excludes_into_loopback, settings
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC203",
    "interface-loopback",
    "NCCL does not use a loopback address between nodes",
    needs=("interfaces", "environment", "nccl"),
)
def interface_loopback(snapshot: Snapshot) -> Iterator[Answer]:
    """In a job with several nodes, NCCL binds an address that other nodes can reach.

    ## Why it matters
    A rank that listens on 127.0.0.1 sends that address to the others, which then connect to themselves. The
    connection is refused or hangs. NCCL falls back to lo if it finds no other interface.

    ## How to fix
    Give the node an interface that is up and has an address; unset `NCCL_SOCKET_IFNAME=lo`, or name another interface.

    ## Source
    NCCL src/misc/socket.cc: the default search ends with prefix `lo`; 127.0.0.1 is never skipped.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node")
        return
    trapped = {setting.host for setting in settings(snapshot) if excludes_into_loopback(setting)}
    found = [choice for choice in chosen(snapshot) if is_loopback(choice.address)]
    caught = [choice for choice in found if choice.host not in trapped]
    if caught:
        yield _finding(caught)
    elif found:
        yield NotApplicable("the cause is an exclusion: see ifname-excludes-into-loopback")
    yield from not_chosen(snapshot)


def _finding(caught: list[Chosen]) -> Finding:
    hosts = tuple(choice.host for choice in caught)
    return Finding(
        "error",
        f"NCCL uses {caught[0].name} ({caught[0].address}) on {named(hosts)}: "
        "no other node can reach a loopback address",
        hosts,
        tuple(
            Evidence(
                (choice.host,),
                "interface NCCL uses",
                f"{choice.name} {choice.address}",
                "an address that others can reach",
                "NCCL",
            )
            for choice in caught
        ),
        (Fix("name an interface that other nodes reach, or bring one up", ("ip -brief address",)),),
    )
