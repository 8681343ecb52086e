"""NC114 rendezvous-name."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.snapshot import NameView, Snapshot, WorkersAddress


@check("NC114", "rendezvous-name", "Every node can resolve the name that the c10d rendezvous uses for rank 0")
def rendezvous_name(snapshot: Snapshot) -> Iterator[Answer]:
    """The name that torch uses for the node of rank 0 resolves to that node on every other node.

    ## Why it matters
    With `--rdzv-backend c10d` the workers' MASTER_ADDR is not the endpoint: it is the full host name (FQDN) of the
    node that gets rank 0, which is the first in the order of these names. If another node cannot resolve it, or its
    /etc/hosts has another address, the agents rendezvous and the workers hang. With `--rdzv-backend static` the same
    nodes work.

    ## How to fix
    Make the name known on every node (DNS, /etc/hosts), or start torchrun on each node with `--local-addr` and that
    node's address on the network between the nodes.

    ## Source
    torch/distributed/elastic/rendezvous: dynamic_rendezvous.py (_NodeDescGenerator, _mark_rendezvous_complete), api.py
    (RendezvousStoreInfo.build).
    """
    workers = snapshot.workers_address
    if not any(launch.rendezvous == "c10d" for launch in snapshot.claims):
        yield NotApplicable("the job does not use a c10d rendezvous")
        return
    if isinstance(workers, Missing):
        yield NotKnown(f"the name that workers will get: {workers}")
        return
    own_addresses = _own_addresses(snapshot, workers.host)
    groups: dict[str, list[NameView]] = {}
    for view in workers.views:
        if view.host == workers.host:
            continue
        wrong = _wrong(view, own_addresses)
        if isinstance(wrong, Missing):
            yield NotKnown(f"what {workers.name} resolves to: {wrong}", (view.host,))
        elif wrong:
            groups.setdefault(wrong, []).append(view)
    for wrong, views in groups.items():
        yield _finding(workers, wrong, views, own_addresses)
    yield from not_reported(snapshot)


def _own_addresses(snapshot: Snapshot, host: str) -> tuple[str, ...]:
    """The addresses of the node that others may reach it by; empty where they are not known."""
    return tuple(
        address.address
        for node, interfaces in snapshot.known("interfaces")
        if node.host == host
        for interface in interfaces
        for address in interface.addresses
        if not is_loopback(address.address)
    )


def _wrong(view: NameView, own_addresses: tuple[str, ...]) -> str | Missing:
    if isinstance(view.addresses, Missing):
        known_not = view.addresses.missing in ("absent", "error")
        return "cannot be resolved" if known_not else view.addresses
    if any(address in own_addresses for address in view.addresses):
        return ""
    if all(is_loopback(address) for address in view.addresses):
        return f"resolves to {view.addresses[0]}, which is the asking node itself,"
    return f"resolves to {', '.join(view.addresses)}, which is not an address of it," if own_addresses else ""


def _finding(
    group: WorkersAddress, wrong: str, views: list[NameView], own_addresses: tuple[str, ...]
) -> Finding:
    hosts = tuple(view.host for view in views)
    usable = [address for address in own_addresses if ":" not in address] or list(own_addresses)
    local = f" (on {group.host}: --local-addr={usable[0]})" if usable else ""
    return Finding(
        "error",
        f"the workers will get MASTER_ADDR={group.name}, the name of {group.host}, which gets rank 0; "
        f"it {wrong} on "
        f"{named(hosts)}, so {verb(hosts, 'its', 'their')} ranks would wait until the timeout",
        hosts,
        tuple(
            Evidence(
                (view.host,),
                f"{group.name} resolves to",
                str(view.addresses) if isinstance(view.addresses, Missing) else ", ".join(view.addresses),
                f"an address of {group.host}",
                "getaddrinfo on this node",
            )
            for view in views
        ),
        (
            Fix(
                f"start torchrun on every node with --local-addr and that node's address{local}, or make {group.name} "
                "known on all nodes (DNS, /etc/hosts)",
                (f"getent ahosts {group.name}   # on every node",),
            ),
        ),
    )
