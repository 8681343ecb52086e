"""NC204 interface-virtual."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import Chosen, chosen, not_chosen
from ncclcheck.checks.hosts import job_size, named
from ncclcheck.checks.network._reach import directions
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.candidates import is_usable

# Names that container engines, hypervisors and VPNs give to interfaces that do not lead to other nodes.
_LOCAL_NAMES = (
    "docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "cilium", "podman", "lxc", "lxd", "tun", "tap", "wg",
    "tailscale", "vmnet", "vnet", "usb",
)  # fmt: skip


@check(
    "NC204",
    "interface-virtual",
    "NCCL uses a real network interface",
    needs=("interfaces", "environment", "nccl"),
)
def interface_virtual(snapshot: Snapshot) -> Iterator[Answer]:
    """NCCL does not use a bridge, veth, tunnel or another virtual interface of a container engine or VPN.

    ## Why it matters
    A bridge such as docker0 only reaches containers on the same machine, and a tunnel is slow. In a container a veth
    or macvlan may be the only interface: if other nodes can reach it and the node has no network hardware of its own,
    the check passes; if it has, the finding is information. If they cannot, and there is no other interface to choose,
    the checks of reach report it.

    ## How to fix
    Name the interface to use, such as `NCCL_SOCKET_IFNAME==eth0`, the same on all nodes.

    ## Source
    NCCL src/misc/socket.cc: only names beginning with docker, lo (and virbr from 2.28) are left for last; br-*, cni0,
    veth*, tun* and wg* are not.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node")
        return
    caught = [choice for choice in chosen(snapshot) if _is_virtual(choice)]
    probed = directions(snapshot, "tcp") if caught else ()
    tried = {probe.to_host for probe in probed if probe.outcome != "error"}
    reached = {probe.to_host for probe in probed if probe.outcome == "ok"}
    dead_ends = [
        choice for choice in caught if choice.host in tried - reached and _has_another(snapshot, choice)
    ]
    second_best = [
        choice for choice in caught if choice.host in reached and _has_hardware(snapshot, choice.host)
    ]
    if dead_ends:
        yield _finding("warning", dead_ends, "and no other node could reach it")
    if second_best:
        yield _finding("info", second_best, "though the node has network hardware, which may be faster")
    untried = tuple(choice.host for choice in caught if choice.host not in tried)
    if untried:
        yield NotKnown(
            "whether other nodes can reach the virtual interface that NCCL uses was not tested", untried
        )
    yield from not_chosen(snapshot)


def _is_virtual(choice: Chosen) -> bool:
    kind = choice.interface.kind
    return kind in {"bridge", "virtual"} or (kind != "loopback" and choice.name.startswith(_LOCAL_NAMES))


def _has_another(snapshot: Snapshot, choice: Chosen) -> bool:
    """Return whether the node has another interface to choose; where not, the checks of reach say all there is."""
    return any(
        is_usable(interface)
        and interface.addresses
        and interface.kind not in {"loopback", "bridge"}
        and interface.name != choice.name
        for node, interfaces in snapshot.known("interfaces")
        if node.host == choice.host
        for interface in interfaces
    )


def _has_hardware(snapshot: Snapshot, host: str) -> bool:
    return any(
        is_usable(interface) and interface.is_hardware and interface.addresses
        for node, interfaces in snapshot.known("interfaces")
        if node.host == host
        for interface in interfaces
    )


def _finding(severity: Severity, caught: list[Chosen], consequence: str) -> Finding:
    hosts = tuple(choice.host for choice in caught)
    kinds = ", ".join(dict.fromkeys(f"{choice.name} ({_kind(choice)})" for choice in caught))
    return Finding(
        severity,
        f"NCCL uses {kinds} on {named(hosts)}, which is not network hardware, {consequence}",
        hosts,
        tuple(
            Evidence(
                (choice.host,),
                "interface NCCL uses",
                f"{choice.name} {choice.address}, {_kind(choice)}",
                "hardware",
                "/sys/class/net",
            )
            for choice in caught
        ),
        (
            Fix(
                "name the interface to use with NCCL_SOCKET_IFNAME, if there is a better one",
                ("ip -brief address",),
            ),
        ),
    )


def _kind(choice: Chosen) -> str:
    return choice.interface.tunnel or choice.interface.kind
