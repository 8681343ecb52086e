"""NC218 route-asymmetric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.chosen import chosen, not_chosen, owner_of
from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface, Route
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.addresses import family, is_link_local, network, number_of, parsed, range_of
from ncclcheck.model.snapshot import Snapshot

_LISTED = 4


@check(
    "NC218",
    "route-asymmetric",
    "Traffic to a peer leaves through the interface of the same network",
    needs=("interfaces", "routes"),
    nodes=2,
    joined=True,
)
def route_asymmetric(snapshot: Snapshot) -> Iterator[Answer]:
    """Each node sends to an address of a peer through its own interface in that address's network.

    ## Why it matters
    NCCL binds an interface to listen, and the kernel chooses the interface to send from. If they differ, the two
    directions of a connection take different paths. The fast network is used in one direction only, the slow one
    carries part of the data, and reverse path filtering or a stateful firewall may drop the connection.

    ## How to fix
    Give each network its route on every node: `ip route add NETWORK dev IFACE` (or `via` its own router). Where two
    interfaces have default routes, or addresses that are reached through a router, use policy routing: a table per
    interface and `ip rule add from ADDRESS table N`.

    ## Source
    The kernel's own choice, asked with a UDP socket that sends nothing, and the addresses of the interfaces. NCCL
    src/misc/socket.cc: ncclSocketConnect binds no address. Linux ip-sysctl.rst (rp_filter).
    """
    wrong: dict[tuple[str, str], list[_Crossing]] = {}
    for crossing in _crossings(snapshot):
        if isinstance(crossing, NotKnown):
            yield crossing
        else:
            wrong.setdefault((crossing.expected, crossing.actual), []).append(crossing)
    for crossings in wrong.values():
        yield _finding(crossings, snapshot)
    yield from _not_asked(snapshot)
    yield from not_chosen(snapshot)


class _Crossing(Struct, frozen=True):
    """`source` sends to `address` of `target`'s interface `name` through `actual`, where `expected` leads there."""

    source: str
    target: str
    name: str
    address: str
    expected: str
    actual: str
    source_address: str
    why: str


def _crossings(snapshot: Snapshot) -> Iterator[_Crossing | NotKnown]:
    interfaces: dict[str, tuple[Interface, ...]] = {
        node.host: value for node, value in snapshot.known("interfaces")
    }
    used = {choice.host: choice for choice in chosen(snapshot)}
    for node, routes in snapshot.known("routes"):
        own_interfaces = interfaces.get(node.host, ())
        direct = _direct(own_interfaces)
        for route in routes:
            if route.purpose not in interfaces or node.host not in interfaces:
                continue  # the master, or a node whose interfaces are not known
            if _leaves_directly(route, direct):
                continue  # as nearly all do
            theirs = interfaces[route.purpose]
            target = used.get(route.purpose)
            is_used = target is not None and target.address == route.destination
            if _is_own(own_interfaces, route.destination) or is_link_local(route.destination):
                continue  # it says nothing about the way to a peer
            if isinstance(route.interface, Missing) or isinstance(route.source_address, Missing):
                if is_used:
                    yield NotKnown(f"route to {route.purpose}: {route.interface}", (node.host,))
                continue
            mine = used[node.host].interface if is_used and node.host in used else None
            far = target.interface if is_used and target else owner_of(theirs, route.destination, "")
            expected, why = _expected(
                own_interfaces,
                route,
                mine,
                far,
                (node.host, route.purpose, route.destination) in _reached(snapshot),
            )
            actual = next(
                (interface for interface in own_interfaces if interface.name == route.interface), None
            )
            if actual is None or actual.kind == "loopback" or not expected:
                continue
            if any(_is_same_link(actual, interface) for interface in expected):
                continue
            yield _Crossing(
                node.host,
                route.purpose,
                far.name if far else "",
                route.destination,
                expected[0].name,
                actual.name,
                route.source_address,
                why,
            )


def _direct(own_interfaces: Sequence[Interface]) -> list[tuple[str, int, int, str]]:
    """Return the subnets of a node as (family, first and last address, interface), the longest prefixes first."""
    subnets = [
        (entry.prefix_length, *range_of(entry.address, entry.prefix_length), interface.name)
        for interface in own_interfaces
        if _is_up(interface)
        for entry in interface.addresses
    ]
    return [
        (version, first, last, name)
        for _, version, first, last, name in sorted(subnets, key=lambda entry: -entry[0])
        if first < last
    ]


def _leaves_directly(route: Route, direct: Sequence[tuple[str, int, int, str]]) -> bool:
    """Return whether the route leaves through the interface with the longest prefix that its destination is in."""
    version, number = number_of(route.destination)
    for subnet_version, first, last, name in direct:
        if subnet_version == version and first <= number <= last:
            return name == route.interface
    return False


def _expected(
    own_interfaces: Sequence[Interface],
    route: Route,
    mine: Interface | None,
    far: Interface | None,
    reached: bool,
) -> tuple[tuple[Interface, ...], str]:
    """The interfaces that a packet to that address should leave through, and why; none where that is open.

    An interface in the address's own subnet. Beyond a router: the one NCCL uses, for the address it uses there; and
    for other addresses the hardware of the same name, if they are reached at all, as rails of a cluster have it.
    """
    direct = tuple(
        interface
        for interface in own_interfaces
        if _is_up(interface) and _covers(interface, route.destination)
    )
    if direct:
        lengths = {interface.name: _prefix(interface, route.destination) for interface in direct}
        longest = max(lengths.values())
        return tuple(
            interface for interface in direct if lengths[interface.name] == longest
        ), "which is in the same subnet"
    if mine is not None:
        return (mine,), "which NCCL uses"
    same_name = tuple(
        interface
        for interface in own_interfaces
        if far is not None and interface.name == far.name and _is_up(interface) and interface.addresses
    )
    if (
        reached
        and far is not None
        and far.is_hardware
        and all(interface.is_hardware for interface in same_name)
    ):
        return same_name, "its counterpart"
    return (), ""


@once_per_subject
def _reached(snapshot: Snapshot) -> frozenset[tuple[str, str, str]]:
    """Return which node reached which other at which address."""
    probes = () if isinstance(snapshot.probes, Missing) else snapshot.probes
    return frozenset(
        (probe.from_host, probe.to_host, probe.address)
        for probe in probes
        if probe.kind == "tcp" and probe.outcome == "ok"
    )


def _is_own(own_interfaces: Sequence[Interface], address: str) -> bool:
    return any(entry.address == address for interface in own_interfaces for entry in interface.addresses)


def _is_up(interface: Interface) -> bool:
    return interface.running is True and interface.kind != "loopback"


def _covers(interface: Interface, address: str) -> bool:
    return _prefix(interface, address) >= 0


def _prefix(interface: Interface, address: str) -> int:
    """The length of the longest subnet prefix of the interface that the address is in; -1 where there is none."""
    lengths = [-1]
    for entry in interface.addresses:
        if family(entry.address) == family(address):
            subnet = network(entry.address, entry.prefix_length)
            if subnet.num_addresses > 1 and parsed(address) in subnet:
                lengths.append(entry.prefix_length)
    return max(lengths)


def _is_same_link(interface: Interface, opposite: Interface) -> bool:
    """One interface, or a bond, bridge or VLAN and what it is made of."""
    return interface.name in (opposite.name, opposite.master, *opposite.lower) or opposite.name in (
        interface.master,
        *interface.lower,
    )


def _finding(crossings: Sequence[_Crossing], snapshot: Snapshot) -> Finding:
    first = crossings[0]
    senders = tuple(dict.fromkeys(crossing.source for crossing in crossings))
    targets = tuple(dict.fromkeys(crossing.target for crossing in crossings))
    more = f" (and {len(crossings) - 1} more such paths)" if len(crossings) > 1 else ""
    return Finding(
        "warning",
        f"{named(senders)} {verb(senders, 'sends', 'send')} to {first.name} of {named(targets)} through {first.actual} "
        f"and not through {first.expected}, {first.why}: {first.source} reaches {first.address} from "
        f"{first.source_address}{more}; the two directions of a connection take different paths, "
        f"and the data does not use {first.expected}",
        senders,
        tuple(piece for crossing in crossings[:_LISTED] for piece in _evidence(crossing, snapshot)),
        (
            Fix(
                f"give the network of {first.address} a route through {first.expected} on "
                f"{named(senders)}; if there are several routes to it, use policy routing",
                (
                    f"ip route get {first.address}",
                    f"sudo ip route add {first.address} dev {first.expected}   # or the whole network, via its router",
                    f"sudo ip rule add from ADDRESS_OF_{first.expected} table 100   # policy routing",
                ),
                risk="a wrong route makes the node unreachable: keep a second access to it",
            ),
        ),
    )


def _evidence(crossing: _Crossing, snapshot: Snapshot) -> Iterator[Evidence]:
    """The route that was found, and the one back."""
    yield Evidence(
        (crossing.source,),
        f"route to {crossing.address} ({crossing.name} of {crossing.target})",
        f"from {crossing.source_address} through {crossing.actual}",
        f"through {crossing.expected}",
        f"the kernel of {crossing.source}",
    )
    for node, routes in snapshot.known("routes"):
        if node.host != crossing.target:
            continue
        back = [route for route in routes if route.purpose == crossing.source]
        for route in back[:_LISTED]:
            yield Evidence(
                (crossing.target,),
                f"route back to {route.destination}",
                f"from {route.source_address} through {route.interface}",
                "",
                f"the kernel of {crossing.target}",
            )


def _not_asked(snapshot: Snapshot) -> Iterator[NotKnown]:
    """The nodes that were not asked for their route to an address that NCCL uses, though they had to try it."""
    asked = {
        (node.host, route.purpose, route.destination)
        for node, routes in snapshot.known("routes")
        for route in routes
    }
    used = {attempt.host: attempt.address for attempt in chosen(snapshot)}
    tried = [
        (probe.from_host, probe.to_host, probe.address)
        for probe in of_kind(snapshot.probes, "tcp")
        if used.get(probe.to_host) == probe.address
    ]
    for host in sorted({attempt[0] for attempt in tried if attempt not in asked}):
        yield NotKnown("its routes to the other nodes were not read", (host,))
    if not tried:
        yield NotKnown("no connection to an address that NCCL uses was tried")
