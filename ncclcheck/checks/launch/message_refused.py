"""NC112 message-refused."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import job_size, named, not_reported
from ncclcheck.checks.launch._builds import build_hint
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.authentication import Foreign
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Refused, Snapshot

_MOST_NAMED = 3
_CAUSES = {
    "no-key": "no key",
    "other-key": "another key, or a message of another run",
    "damaged": "a message of a member, changed or sent again by somebody on the path",
}
ORDER = "order "  # begins the subject of an order that the host named did not follow


@check("NC112", "message-refused", "Every message between the nodes was valid")
def message_refused(snapshot: Snapshot) -> Iterator[Answer]:
    """Every message of a node has a known schema version, a permitted size and a valid format.

    ## Why it matters
    A rejected message means that a node runs another version of ncclcheck, or that another program writes into the
    job's store. Its content was dropped unread, so that node was not checked. A rejected order asked for something
    that node 0 never asks for, such as a variable that loads a library: the node did not follow it.

    In a run with a key, messages without it are dropped before anything in them is read. They change nothing, and are
    only counted here, by the address that they came from.

    ## How to fix
    Install the same ncclcheck on every node. If the versions are equal, look for another job on the same master
    address and port.

    ## Source
    ncclcheck's own rule: messages are decoded strictly and bounded in size; nothing from the network is unpickled.
    """
    by_host: dict[str, list[Refused]] = {}
    orders: list[Refused] = []
    for refused in snapshot.refused:
        if refused.subject.startswith(ORDER):
            orders.append(refused)
        else:
            by_host.setdefault(refused.host, []).append(refused)
    if orders:
        yield _not_followed(snapshot, orders)
    for host, messages in by_host.items():
        subjects = ", ".join(dict.fromkeys(message.subject for message in messages))
        yield Finding(
            "error",
            f"a message of {host} ({subjects}) was rejected, so this node was not checked: "
            f"{messages[0].reason}",
            (host,),
            tuple(
                Evidence(
                    (host,),
                    f"message {message.subject!r}",
                    message.reason,
                    "a message of this schema",
                    "the store",
                )
                for message in messages
            ),
            (Fix("install the same ncclcheck on every node", (_install(snapshot),)),),
        )
    yield from _foreign(snapshot)
    if job_size(snapshot) == 1:
        yield NotApplicable("one node sends no messages")
    yield from not_reported(snapshot)


def _not_followed(snapshot: Snapshot, orders: list[Refused]) -> Finding:
    """Orders that nodes did not follow: their origin is whoever else can write into the store."""
    hosts = tuple(dict.fromkeys(order.host for order in orders))
    subject = orders[0].subject.removeprefix(ORDER)
    another_build = build_hint(snapshot, hosts)
    summary = (
        f"{named(hosts)} rejected an order of node 0 ({subject}): {orders[0].reason}; {another_build}"
        if another_build
        else f"{named(hosts)} rejected an order that node 0 did not send ({subject}): "
        f"{orders[0].reason}; another program writes into the store of this run"
    )
    install = Fix("install the same ncclcheck on every node", (_install(snapshot),))
    return Finding(
        "error",
        summary,
        hosts,
        tuple(
            Evidence(
                (order.host,),
                f"message {order.subject!r}",
                order.reason,
                "an order of node 0",
                "the store, which every machine that reaches the master port can write to",
            )
            for order in orders
        ),
        (install if another_build else Fix("allow only the nodes of the job to connect to the master port"),),
    )


def _foreign(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield messages without the run's key: they were dropped and changed nothing."""
    seen = snapshot.authentication
    if not seen.foreign:
        return
    count = sum(foreign.count for foreign in seen.foreign) + seen.further
    origins = list(dict.fromkeys(foreign.origin for foreign in seen.foreign))
    more = f" and {len(origins) - _MOST_NAMED} more addresses" if len(origins) > _MOST_NAMED else ""
    whence = ", ".join(origins[:_MOST_NAMED]) + more
    yield Finding(
        "info",
        f"{count} messages without the key of this run were dropped, from {whence}: they changed nothing",
        (),
        tuple(
            Evidence(
                (),
                f"{foreign.count} messages from {foreign.origin}{_introduced(foreign)}",
                _CAUSES[foreign.cause],
                "messages with the key of this run",
                "the HMAC of each message",
            )
            for foreign in seen.foreign
        ),
        (Fix("look for another job, or for a node without the key, at these addresses"),),
    )


def _introduced(foreign: Foreign) -> str:
    return f", whose sender calls itself {foreign.said}" if foreign.said else ""


def _install(snapshot: Snapshot) -> str:
    versions = [software.ncclcheck for _, software in snapshot.known("software")]
    return (
        f"pip install ncclcheck=={max(set(versions), key=versions.count)}"
        if versions
        else "pip install -U ncclcheck"
    )
