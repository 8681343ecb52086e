"""NC113 rendezvous-host."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._claims import Claim, claims, not_claimed
from ncclcheck.checks.launch._master import Sighting, first_address, saw, sightings
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.snapshot import Snapshot

_RULE = "torch's own rule, followed on this node"


@check("NC113", "rendezvous-host", "Exactly one node serves the c10d rendezvous")
def rendezvous_host(snapshot: Snapshot) -> Iterator[Answer]:
    """With `--rdzv-backend c10d`, exactly one node serves the store of `--rdzv-endpoint`, and all others reach it.

    ## Why it matters
    Each torchrun decides on its own whether it serves the store: it compares the endpoint with its own host name and
    the addresses of that name. If the endpoint is an alias, an address of a second interface, of NAT or a virtual
    one, no node recognises itself as the host, and all wait until their timeout. If the name resolves to a loopback
    address, or to one that several nodes have (172.17.0.1), several nodes serve a store of their own, and each waits
    alone.

    ## How to fix
    Use the node's own host name as the endpoint, or the address to which it resolves there; or start torchrun on that
    node alone with `--rdzv-conf is_host=1`. Correct an /etc/hosts that maps the name to 127.0.1.1.

    ## Source
    torch/distributed/elastic/rendezvous: c10d_rendezvous_backend.py (_create_tcp_store), utils.py
    (_matches_machine_hostname).
    """
    seen = tuple(claim for claim in claims(snapshot) if claim.launch.rendezvous == "c10d")
    if not seen:
        yield NotApplicable("the job does not use a c10d rendezvous")
        return
    hosting = tuple(claim for claim in seen if claim.launch.serves_store)
    if snapshot.viewpoint == "all" and not hosting:
        yield _nobody(snapshot, seen)
    elif not hosting and saw(snapshot, "refused", "no-route"):
        yield _nobody_here(snapshot, seen)
    if hosting and snapshot.silent:
        yield from _alone(snapshot, hosting)
    yield from not_claimed(snapshot)


def _endpoint(claim: Claim) -> str:
    return f"{claim.launch.master_addr}:{claim.launch.master_port}"


def _nobody(snapshot: Snapshot, seen: tuple[Claim, ...]) -> Finding:
    owners = tuple(
        sighting
        for sighting in sightings(snapshot)
        if sighting.path.is_local and not _leads_to_itself(sighting)
    )
    hosts = tuple(owner.host for owner in owners) or tuple(claim.host for claim in seen)
    endpoint = _endpoint(seen[0])
    whose = f", though its address is one of {named(hosts)}" if owners else ""
    pieces = tuple(_evidence(snapshot, claim) for claim in seen if claim.host in hosts)
    return Finding(
        "error",
        f"no node recognises itself as the host of the rendezvous endpoint {endpoint}{whose}: no "
        "torchrun would serve the store, and all nodes would wait until their timeout",
        hosts,
        pieces,
        (
            Fix(f"start torchrun on {named(hosts[:1])}, and on no other node, with --rdzv-conf is_host=1"),
            *_better_names(snapshot, owners, seen[0].launch.master_port),
        ),
    )


def _better_names(snapshot: Snapshot, owners: tuple[Sighting, ...], port: int) -> Iterator[Fix]:
    """The endpoint by an address that the owner's own name resolves to, where that is no loopback address."""
    for node, names in snapshot.known("names"):
        known = () if isinstance(names.addresses, Missing) else names.addresses
        usable = [address for address in known if not is_loopback(address)]
        if usable and any(owner.host == node.host for owner in owners):
            yield Fix(f"or use an endpoint that {node.host} recognises: --rdzv-endpoint={usable[0]}:{port}")


def _nobody_here(snapshot: Snapshot, seen: tuple[Claim, ...]) -> Finding:
    host, endpoint = seen[0].host, _endpoint(seen[0])
    return Finding(
        "warning",
        f"no node serves the rendezvous store at {endpoint}, and {host} does not recognise itself "
        "as its host: if it should be the host, torch does not recognise it; otherwise the host has "
        "not started, or does not recognise itself",
        (host,),
        (_evidence(snapshot, seen[0]),),
        (Fix("start torchrun on the intended host, and on no other node, with --rdzv-conf is_host=1"),),
    )


def _alone(snapshot: Snapshot, hosting: tuple[Claim, ...]) -> Iterator[Answer]:
    """A host by an address that others may have as well, to which some did not come."""
    sighting_by_host = {sighting.host: sighting for sighting in sightings(snapshot)}
    for claim in hosting:
        seen = sighting_by_host.get(claim.host)
        address = first_address(seen.path) if seen is not None else None
        if seen is None or address is None:
            yield NotKnown("the address of the endpoint is not known", (claim.host,))
            continue
        shared = _everywhere(snapshot, claim.host, address)
        if shared:
            yield Finding(
                "error",
                f"the rendezvous endpoint {_endpoint(claim)} is {address} on {claim.host}, {shared}: {claim.host} "
                "serves a store of its own, and nodes that reach another store never join it",
                (claim.host,),
                (_evidence(snapshot, claim),),
                (
                    Fix(
                        "make the name resolve to the same address of the network between the nodes "
                        "on every node, or use that address as --rdzv-endpoint",
                        (f"getent ahosts {claim.launch.master_addr}   # on every node",),
                    ),
                ),
            )


def _everywhere(snapshot: Snapshot, host: str, address: str) -> str:
    """What makes the address one that other machines have too; empty where nothing does."""
    if is_loopback(address):
        return "which is loopback"
    for node, interfaces in snapshot.known("interfaces"):
        for interface in interfaces if node.host == host else ():
            # The veth of a container is its own, and the only network that it has.
            if interface.kind == "bridge" and any(
                candidate.address == address for candidate in interface.addresses
            ):
                return f"the address of {interface.name}, which other machines may have too"
    return ""


def _leads_to_itself(sighting: Sighting) -> bool:
    address = first_address(sighting.path)
    return address is not None and is_loopback(address)


def _evidence(snapshot: Snapshot, claim: Claim) -> Evidence:
    known = {node.host: names for node, names in snapshot.known("names")}
    names = known.get(claim.host)
    own_name = "an unknown name"
    if names is not None:
        led = names.addresses if isinstance(names.addresses, Missing) else ", ".join(names.addresses)
        own_name = f"{names.hostname!r}, which is {led} there"
    host_kind = "the host" if claim.launch.serves_store else "not the host"
    return Evidence(
        (claim.host,),
        f"endpoint {_endpoint(claim)}",
        f"{host_kind}; its own name is {own_name}",
        "one node is the host",
        _RULE,
    )
