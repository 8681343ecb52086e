"""NC207 address-duplicate."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.addresses import is_link_local, is_loopback
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Probe, Snapshot

_NAMED = 6
_FIX = Fix(
    "give every node a unique address on that network, or make NCCL use another interface",
    (
        "ip -brief address",
        ("arping -D -I eth0 ADDRESS   # on one of the nodes: shows whether another machine answers"),
    ),
)


@check("NC207", "address-duplicate", "No two nodes have the same address", needs=("interfaces",), nodes=2)
def address_duplicate(snapshot: Snapshot) -> Iterator[Answer]:
    """Every address that NCCL uses belongs to one node, and the node that published it answers there.

    ## Why it matters
    A node that connects to an address which is also its own connects to itself, and with a duplicate address in the
    network the wrong machine answers. Everything looks connected, and then hangs. docker0 has 172.17.0.1 on every
    machine; where NCCL does not use it, the finding is information.

    ## How to fix
    Give every node its own address, or set NCCL_SOCKET_IFNAME to an interface whose addresses are distinct.

    ## Source
    ncclcheck's own probes: both ends compare notes with a nonce. RFC 5227 (address conflicts).
    """
    owners, probes = _owners(snapshot), _probes_by_address(snapshot)
    used = {choice.address: choice.name for choice in chosen(snapshot)}
    spare: dict[str, tuple[str, ...]] = {}
    for address in dict.fromkeys([*owners, *probes]):
        hosts = tuple(dict.fromkeys(host for host, _ in owners.get(address, [])))
        hosts = hosts or tuple(dict.fromkeys(probe.to_host for probe in probes[address]))
        if address in used:
            yield _finding(address, used[address], hosts, probes.get(address, []))
        else:
            spare[address] = hosts
    if spare:
        yield _spare(spare, owners, probes)
    if isinstance(snapshot.probes, Missing):
        yield NotKnown(f"which node answers at the addresses: {snapshot.probes}")
    yield from not_chosen(snapshot)


def _owners(snapshot: Snapshot) -> dict[str, list[tuple[str, str]]]:
    """Address -> (host, interface) of the nodes that have it, where these are several."""
    owners: dict[str, list[tuple[str, str]]] = {}
    for node, interfaces in snapshot.known("interfaces"):
        for interface in interfaces:
            for entry in interface.addresses:
                local = is_loopback(entry.address) or (
                    entry.family == "inet6" and is_link_local(entry.address)
                )
                if interface.kind != "loopback" and not local:
                    owners.setdefault(entry.address, []).append((node.host, interface.name))
    return {address: owner for address, owner in owners.items() if len({host for host, _ in owner}) > 1}


def _probes_by_address(snapshot: Snapshot) -> dict[str, list[Probe]]:
    probes_by_address: dict[str, list[Probe]] = {}
    for probe in () if isinstance(snapshot.probes, Missing) else snapshot.probes:
        if probe.outcome in {"self", "wrong-peer"} and not is_loopback(probe.address):
            probes_by_address.setdefault(probe.address, []).append(probe)
    return probes_by_address


def _finding(address: str, interface: str, hosts: tuple[str, ...], probes: list[Probe]) -> Finding:
    if len(hosts) > 1:
        what = f"{named(hosts)} {verb(hosts, 'has', 'have')} the same address {address} on {interface}, which NCCL uses"
    else:
        what = f"another machine answers at {address} ({interface}), the address that NCCL uses on {named(hosts)}"
    return Finding(
        "error",
        f"{what}: nodes connect to the wrong machine, or to themselves, and hang",
        hosts,
        (
            *(
                Evidence((host,), f"address of {interface}", address, "an address of its own", "getifaddrs")
                for host in hosts
            ),
            *(
                Evidence(
                    (probe.from_host, probe.to_host),
                    f"answer at {address}:{probe.port} for {probe.to_host}, asked by {probe.from_host}",
                    f"{probe.outcome}: {probe.detail}" if probe.detail else probe.outcome,
                    probe.to_host,
                    "probe of this run",
                )
                for probe in probes
            ),
        ),
        (_FIX,),
    )


def _spare(
    spare: dict[str, tuple[str, ...]],
    owners: dict[str, list[tuple[str, str]]],
    probes: dict[str, list[Probe]],
) -> Finding:
    names = {}
    for address in spare:
        found = [name for _, name in owners.get(address, [])] + [
            probe.interface for probe in probes.get(address, [])
        ]
        # Of many the first ones, since a Kubernetes node has hundreds of interfaces
        names[address] = listed(found, _NAMED)
    shared = ", ".join(f"{address} ({names[address]})" for address in spare)
    return Finding(
        "info",
        f"not unique between the nodes: {shared}. NCCL does not use it; do not name it in NCCL_SOCKET_IFNAME",
        tuple(dict.fromkeys(host for hosts in spare.values() for host in hosts)),
        tuple(
            Evidence(
                hosts,
                f"address of {names[address]}",
                address,
                "not used by NCCL",
                "getifaddrs",
            )
            for address, hosts in spare.items()
        ),
    )
