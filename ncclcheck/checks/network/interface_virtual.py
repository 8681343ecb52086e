"""NC204 interface-virtual."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import Chosen, chosen, not_chosen
from ncclcheck.checks.hosts import job_size, named
from ncclcheck.checks.reach import directions
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot

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
    """The interface that NCCL uses is no bridge, veth, tunnel or other product of a container engine or VPN.

    ## Why it matters
    A bridge such as docker0 leads nowhere but to containers on the same machine, and a tunnel is slow. In a container a
    veth or macvlan may be the only way out: where all nodes were seen to reach each other over it, this is only
    worth knowing.

    ## How to fix
    Name the interface to use, such as `NCCL_SOCKET_IFNAME==eth0`, the same on all nodes.

    ## Source
    NCCL src/misc/socket.cc: only names beginning with docker, lo (and virbr from 2.28) are left for last; br-*, cni0,
    veth*, tun* and wg* are not.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node")
        return
    caught = [one for one in chosen(snapshot) if _is_virtual(one)]
    if caught:
        yield _finding(snapshot, caught)
    yield from not_chosen(snapshot)


def _is_virtual(one: Chosen) -> bool:
    kind = one.interface.kind
    return kind in {"bridge", "virtual"} or (kind != "loopback" and one.name.startswith(_LOCAL_NAMES))


def _all_reached(snapshot: Snapshot) -> bool:
    pairs = len(snapshot.nodes) * (len(snapshot.nodes) - 1)
    probed = directions(snapshot, "tcp")
    return not snapshot.silent and len(probed) == pairs > 0 and all(probe.outcome == "ok" for probe in probed)


def _finding(snapshot: Snapshot, caught: list[Chosen]) -> Finding:
    hosts = tuple(one.host for one in caught)
    kinds = ", ".join(dict.fromkeys(f"{one.name} ({_kind(one)})" for one in caught))
    reached = _all_reached(snapshot)
    consequence = (
        "all nodes reach each other over it, but it may be slower than the hardware"
        if reached
        else "such an interface often leads to no other node"
    )
    return Finding(
        "info" if reached else "warning",
        f"NCCL uses {kinds} on {named(hosts)}, no network hardware: {consequence}",
        hosts,
        tuple(
            Evidence(
                (one.host,),
                "interface NCCL uses",
                f"{one.name} {one.address}, {_kind(one)}",
                "hardware",
                "/sys/class/net",
            )
            for one in caught
        ),
        (
            Fix(
                "name the interface to use with NCCL_SOCKET_IFNAME, if there is a better one",
                ("ip -brief address",),
            ),
        ),
    )


def _kind(one: Chosen) -> str:
    return one.interface.tunnel or one.interface.kind
