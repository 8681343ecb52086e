"""NC911 routing-asymmetric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_interface

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import VIRTUAL, as_line, tried
from ncclcheck.checks.logs._view import culprits, remarks, troubles
from ncclcheck.model.events import ConnectFailure, Log, Process, Remark
from ncclcheck.model.finding import Fix


@cause(
    "NC911",
    "routing-asymmetric",
    "Replies leave through another interface than the request came in on",
    explains=("firewall-blocked-ports", "wrong-interface", "rank-exception", "ib-link-or-fabric", "roce-gid"),
    between_nodes=True,
    fixes=(
        Fix(
            "give the interfaces different subnets, or use policy routing (ip rule) with "
            "arp_ignore/arp_announce; compare the order of routes on all nodes",
            (
                "ip route; ip rule",
                "sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.all.arp_ignore",
                "ncclcheck preflight --select peer-one-way,route-asymmetric",
            ),
        ),
    ),
)
def routing_asymmetric(log: Log) -> Iterator[Suspect]:
    """Two interfaces of a node are in one subnet, so answers leave through another one than received the request.

    ## Why it matters
    Answers then carry another source address or are dropped by the reverse-path filter of the peer: connections
    hang in one direction.

    ## How to fix
    Give each interface its own subnet, or use policy routing.

    ## Source
    Linux fib lookup takes the route with the lowest metric; Documentation/networking/ip-sysctl.rst (rp_filter,
    arp_ignore).
    """
    routes: dict[tuple[str | None, str], set[str]] = {}
    for remark in remarks(log, "route"):
        routes.setdefault((remark.place.host, remark.values["subnet"]), set()).add(remark.values["device"])
    doubled = {where for where, devices in routes.items() if len(devices) > 1}
    lines = [
        remark for remark in remarks(log, "route") if (remark.place.host, remark.values["subnet"]) in doubled
    ]
    failed = tried(log)
    if lines and (failed or troubles(log)):
        yield suspect(
            f"{lines[0].values['subnet']} is reached through several interfaces of one node, so answers leave through "
            "another one than received the request.",
            [*lines, *remarks(log, "reverse-path"), *failed],
            confidence="likely",
            at=(failed or lines)[0].place,
            hosts=culprits(log, [line.place for line in lines]),
        )
        return
    detours = _other_interface(log)
    if detours and (failed or troubles(log)):
        yield suspect(
            f"The way to {detours[0].values['to']} leads through {detours[0].values['device']}, and NCCL uses another "
            "interface: answers come back another way than the requests went.",
            [*detours, *remarks(log, "reverse-path"), *failed],
            confidence="likely",
            at=(failed or detours)[0].place,
            hosts=culprits(log, [line.place for line in detours]),
        )
        return
    listed = _listed_twice(log)
    if listed and (failed or troubles(log)):
        yield suspect(
            f"{_address(listed[0])} and {_address(listed[1])} are two interfaces of one node in one "
            "subnet, so answers leave through another one than received the request.",
            [*listed, *failed],
            confidence="likely",
            at=(failed or listed)[0].place,
            hosts=culprits(log, [line.place for line in listed]),
        )
        return
    if (together := _in_one_network(log)) and (failed or listed or remarks(log, "inspected")):
        yield _all_through_the_first(together, failed)


def _all_through_the_first(together: Sequence[Process], failed: Sequence[ConnectFailure]) -> Suspect:
    """Return that NCCL sends over interfaces of one network."""
    return suspect(
        f"NCCL sends over {len(together[0].sockets)} interfaces of {together[0].host} whose addresses are of one "
        "network: Linux sends all of it through the first, and answers through another one than received.",
        [*(as_line(process, f"Using {', '.join(process.sockets)}"[:200]) for process in together), *failed],
        confidence="likely",
        at=(failed or together)[0].place,
        hosts=(),
    )


def _address(listed: Remark) -> str:
    return listed.values.get("address") or listed.values.get("held", "")


def _other_interface(log: Log) -> list[Remark]:
    """Return the routes to a peer that leave through another interface than the one whose address NCCL sends it."""
    used = {process.interface: process.address for process in log.processes if process.interface}
    return [
        route
        for route in remarks(log, "route-to")
        if used and route.values["device"] not in used and route.values["source"] not in used.values()
    ]


def _in_one_network(log: Log) -> list[Process]:
    """Return a process of each host whose sockets of NCCL are several, with addresses that share three numbers."""
    found: dict[str, Process] = {}
    for process in log.processes:
        addresses = list(
            dict.fromkeys(socket.partition(":")[2].partition("<")[0] for socket in process.sockets)
        )
        networks = {address.rpartition(".")[0] for address in addresses}
        if len(addresses) > 1 and len(networks) == 1 and "." in addresses[0] and not process.devices:
            found.setdefault(process.host, process)
    return list(found.values())


def _listed_twice(log: Log) -> list[Remark]:
    """Return the interfaces of one node that its own listing shows in one subnet."""
    found: dict[tuple[str | None, str], dict[str, Remark]] = {}
    for remark in remarks(log, "address-listing"):
        device = remark.values.get("device") or remark.values.get("holder", "")
        bits = remark.values.get("bits") or remark.values.get("length", "32")
        if " DOWN " in remark.text or VIRTUAL.match(device) or not bits.isdigit() or not 8 <= int(bits) <= 30:  # noqa: PLR2004 (networks of several machines)
            continue
        try:
            network = ip_interface(f"{_address(remark)}/{bits}").network
        except ValueError:
            continue
        found.setdefault((remark.place.host, str(network)), {}).setdefault(device, remark)
    return next((list(lines.values()) for lines in found.values() if len(lines) > 1), [])
