"""NC907 wrong-interface."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import (
    LINK_LOCAL,
    VIRTUAL,
    as_line,
    distinct_hosts,
    is_bridge_address,
    tried,
    virtual_processes,
)
from ncclcheck.checks.logs._reruns import helped
from ncclcheck.checks.logs._view import culprits, heads, remarks, troubles
from ncclcheck.model.events import ConnectFailure, Event, Log, Process
from ncclcheck.model.finding import Fix

_DOTS = 3
_FOLLOWS = ("firewall-blocked-ports", "container-network", "rank-exception", "world-size-mismatch")


@cause(
    "NC907",
    "wrong-interface",
    "NCCL or Gloo chose an interface that the peers cannot reach",
    explains=_FOLLOWS,
    fixes=(
        Fix(
            "set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) to the interface of the cluster network, or "
            "exclude docker0 and the other bridges",
            (
                "ip -brief address",
                "ncclcheck preflight --select interface-virtual,interface-differs,address-duplicate",
                "ncclcheck env",
            ),
        ),
    ),
)
def wrong_interface(log: Log) -> Iterator[Suspect]:
    """NCCL or Gloo chose an interface that the peers cannot reach: a bridge, a tunnel, or another network's adapter.

    ## Why it matters
    Every node publishes the address of its choice; peers that connect to a private or duplicate address reach
    no node, or themselves.

    ## How to fix
    Name the interface of the cluster network: NCCL_SOCKET_IFNAME, and for Gloo GLOO_SOCKET_IFNAME.

    ## Source
    NCCL misc/socket.cc (findInterfaces), gloo transport/tcp/device.cc; names that Docker, libvirt, CNI and
    tunnels use.
    """
    failed = tried(log)
    if better := helped(log, "btl_tcp_if_include"):
        yield _with_another(better)
        return
    to_itself = [failure for failure in failed if failure.local and failure.local == failure.address]
    virtual = virtual_processes(log)
    if virtual and troubles(log):
        named = heads(f"{process.interface}:{process.address}" for process in virtual)
        yield suspect(
            f"NCCL uses {named}, an interface that other nodes cannot reach.",
            [
                *(
                    as_line(process, f"Using {process.interface}:{process.address}")
                    for process in virtual[:2]
                ),
                *failed,
            ],
            confidence="certain" if failed else "likely",
            hosts=_choosing_hosts(virtual),
        )
    elif to_itself:
        yield suspect(
            f"A node connects to {to_itself[0].address}, which is also its own address: an interface with the "
            "same address on "
            "every node (like docker0) was chosen.",
            to_itself,
            hosts=(),
        )
    elif bridged := _bridged(log, failed):
        yield _advertised(log, bridged)
    elif (linked := _link_local_sockets(log)) and troubles(log) and not _of_its_own_end(log):
        yield _also_link_local(linked)
    elif of_bridges := _over_bridges(log, failed):
        yield of_bridges
    elif failed and len(set(_subnets(log).values())) > 1:
        odd = _odd_hosts(log)
        yield suspect(
            "The nodes use interfaces in different networks "
            f"({heads(sorted(set(_subnets(log).values())))}.x.x), and do not reach each other.",
            failed,
            confidence="likely",
            hosts=odd or culprits(log, [failure.place for failure in failed]),
            explains=("firewall-blocked-ports",),
        )


def _with_another(better: Sequence[Event]) -> Suspect:
    """Return that a later command worked over the interface that was set."""
    what = "Open MPI tried an interface that the peers do not reach, and worked with the one of btl_tcp_if_include."
    return suspect(what, better, confidence="likely", hosts=())


def _advertised(log: Log, bridged: Sequence[ConnectFailure]) -> Suspect:
    """Return that a peer gave an address that leads nowhere; a bridge's, which all nodes have, blames none of them."""
    address = bridged[0].address.partition("%")[0]  # without the zone, which is a number of the speaker's own
    of_all = is_bridge_address(address) and len({failure.place.host for failure in bridged}) > 1
    found = suspect(
        f"A peer advertised {address}, {_why_not(address)}.",
        bridged,
        confidence="likely",
        hosts=() if of_all else _advertisers(log, address),
        explains=(*_FOLLOWS, "net-plugin-config"),  # NCCL fell back to the sockets that fail here
    )
    return replace(found, blames_nobody=of_all)


def _choosing_hosts(virtual: Sequence[Process]) -> tuple[str, ...]:
    """Return the hosts; of one host also a link-local address, which is how its peers know it."""
    hosts = distinct_hosts(virtual)
    is_known_by_it = len(hosts) == 1 and virtual[0].address.lower().startswith(LINK_LOCAL)
    return (*hosts, virtual[0].address) if is_known_by_it else hosts


def _also_link_local(linked: Sequence[Process]) -> Suspect:
    """Return that data goes over interfaces without an address of the network."""
    return suspect(
        "NCCL also uses interfaces that have only a link-local address, which leads to no other network: data "
        "sent over them does not arrive.",
        [as_line(process, f"Using {', '.join(process.sockets)}"[:200]) for process in linked],
        confidence="likely",
        hosts=distinct_hosts(linked)[:2],
        explains=("firewall-blocked-ports", "slow-rank-timeout", "rank-exception"),
    )


def _of_its_own_end(log: Log) -> bool:
    """Return True if NCCL only warns that a socket of its own was closed under it: nothing was sent in vain."""
    warned = [remark for remark in remarks(log, "nccl-warn") if remark.values.get("kind") != "harmless"]
    return bool(warned) and all("Bad file descriptor" in remark.text for remark in warned)


def _link_local_sockets(log: Log) -> list[Process]:
    """Return the processes whose NCCL sends data over sockets with a link-local address."""
    return [
        process
        for process in log.processes
        if not process.devices
        and any(socket.partition(":")[2].lower().startswith(LINK_LOCAL) for socket in process.sockets)
    ]


def _over_bridges(log: Log, failed: Sequence[ConnectFailure]) -> Suspect | None:
    """Return that NCCL sends data over several interfaces, some bridges or tunnels, where a connection failed blindly.

    NCCL 2.9 and older does not say to which address it could not connect.
    """
    using = [process for process in log.processes if not process.devices and _bridges_of(process)]
    blind = [
        failure
        for failure in failed
        if failure.final and failure.layer == "nccl" and failure.address == "a peer"
    ]
    if not using or not blind:
        return None
    return suspect(
        f"NCCL also uses {heads(_bridges_of(using[0]))}, which no other node reaches, and a connection failed.",
        [*(as_line(process, f"Using {', '.join(process.sockets)}"[:200]) for process in using[:2]), *failed],
        confidence="likely",
        hosts=distinct_hosts(using)[:2],
    )


def _bridges_of(process: Process) -> list[str]:
    return [socket for socket in process.sockets if VIRTUAL.match(socket)]


def _why_not(address: str) -> str:
    """Return why no other node reaches the address."""
    if address.lower().startswith(LINK_LOCAL):
        return "a link-local address, which leads to no other machine"
    return "a container bridge's address, which every node has for itself"


def _bridged(log: Log, failed: Sequence[ConnectFailure]) -> list[ConnectFailure]:
    """Return the failed connections to an address that a bridge of containers or virtual machines has."""
    listed = {
        remark.values.get("address") or remark.values.get("held", "")
        for remark in remarks(log, "address-listing")
        if VIRTUAL.match(remark.values.get("device") or remark.values.get("holder", ""))
    }
    hosts_with: defaultdict[str, set[str]] = defaultdict(set)
    for process in log.processes:  # `br-05ab815fa14e:172.19.0.1`
        for socket in process.sockets:
            device, _, address = socket.partition(":")
            if len(process.sockets) > 1:  # with one alone, it is the network of the containers
                hosts_with[address].add(process.host)
            if VIRTUAL.match(device):
                listed.add(address)
    listed |= {address for address, hosts in hosts_with.items() if len(hosts) > 1}  # of none of them alone
    return [
        failure
        for failure in failed
        if (failure.final or failure.layer == "other")
        and (
            is_bridge_address(failure.address)
            or failure.address in listed
            or failure.address.lower().startswith(LINK_LOCAL)
        )
    ]


def _advertisers(log: Log, address: str) -> tuple[str, ...]:
    """Return who has the address, else the address, with the only host that uses link-local addresses itself."""
    if holders := _holders(log, address):
        return tuple(holders[:1])
    linked = distinct_hosts(_link_local_sockets(log)) if address.lower().startswith(LINK_LOCAL) else ()
    return (address, *linked) if len(linked) == 1 else (address,)


def _holders(log: Log, address: str) -> list[str]:
    """Return the hosts whose own listing of addresses has it; a bridge's address is on every host."""
    return [
        remark.place.host
        for remark in remarks(log, "address-listing")
        if address in remark.values.values() and remark.place.host and not is_bridge_address(address)
    ]


def _subnets(log: Log) -> dict[str, str]:
    """Host -> the first two numbers of its IPv4 address: nodes of one network nearly always share them."""
    return {
        process.host: ".".join(process.address.split(".")[:2])
        for process in log.processes
        if process.address.count(".") == _DOTS
    }


def _odd_hosts(log: Log) -> tuple[str, ...]:
    subnets = _subnets(log)
    counts = {subnet: list(subnets.values()).count(subnet) for subnet in subnets.values()}
    most = max(counts.values())
    return tuple(host for host, subnet in subnets.items() if counts[subnet] < most)
