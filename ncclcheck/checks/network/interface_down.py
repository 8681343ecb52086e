"""NC206 interface-down."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import owner_of
from ncclcheck.checks.hosts import named
from ncclcheck.checks.ifname_settings import (
    GLOO_VARIABLE,
    NCCL_VARIABLE,
    IfnameSetting,
    not_settled,
    settings,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.facts import Interface
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname


@check(
    "NC206",
    "interface-down",
    "The interfaces that NCCL and Gloo use are up",
    needs=("interfaces", "environment", "nccl"),
)
def interface_down(snapshot: Snapshot) -> Iterator[Answer]:
    """The interface that NCCL uses, and those that NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME name, are up and running.

    ## Why it matters
    Up to NCCL 2.27 an interface without a carrier is chosen as long as it has an address, and nothing can connect.
    NCCL 2.28 and newer skip it and use another network than the one named. Gloo does not check.

    ## How to fix
    Bring it up (`ip link set dev X up`), check the cable and the switch port, or name another interface.

    ## Source
    NCCL src/misc/socket.cc and, from 2.28.3, its test of IFF_RUNNING; netdevice(7).
    """
    groups: dict[tuple[str, str], list[tuple[IfnameSetting, Interface]]] = {}
    for setting in settings(snapshot):
        for interface, role in _roles(setting).values():
            if not ("up" in interface.flags and interface.running):
                groups.setdefault((interface.name, role), []).append((setting, interface))
    for (name, role), found in groups.items():
        yield _finding(name, role, found)
    yield from not_settled(snapshot)


def _roles(setting: IfnameSetting) -> dict[str, tuple[Interface, str]]:
    """Interface name -> the interface and what it is to the job, chosen before named."""
    by_name = {interface.name: interface for interface in setting.interfaces}
    roles: dict[str, tuple[Interface, str]] = {}
    if setting.choice.interface is not None and setting.choice.address is not None:
        owner = owner_of(setting.interfaces, setting.choice.address, setting.choice.interface)
        if owner is not None:
            roles[owner.name] = (owner, "NCCL uses it")
    for name in setting.gloo or ():
        if name in by_name:
            roles.setdefault(name, (by_name[name], f"{GLOO_VARIABLE} names it"))
    pattern = ifname.parse(setting.nccl) if setting.nccl else None
    for name in pattern.entries if pattern and not pattern.exclude else ():
        if name in by_name:
            roles.setdefault(name, (by_name[name], f"{NCCL_VARIABLE} names it"))
    return roles


def _finding(name: str, role: str, found: list[tuple[IfnameSetting, Interface]]) -> Finding:
    hosts = tuple(setting.host for setting, _ in found)
    severity: Severity = "error" if role == "NCCL uses it" else "warning"
    why = (
        "nothing can connect to it"
        if severity == "error"
        else "so it carries no data, or another interface is used"
    )
    return Finding(
        severity,
        f"{name} is not {_state(found[0][1])} on {named(hosts)}, and {role}: {why}",
        hosts,
        tuple(
            Evidence(
                (setting.host,),
                f"state of {name}",
                f"flags {','.join(interface.flags) or 'none'}; operstate {interface.operstate}",
                "up and running",
                f"getifaddrs, /sys/class/net/{name}/operstate",
            )
            for setting, interface in found
        ),
        (
            Fix(
                "bring the interface up, check its cable and switch port, or name another interface",
                (f"ip link set dev {name} up",),
            ),
        ),
    )


def _state(interface: Interface) -> str:
    return "running (no carrier)" if "up" in interface.flags else "up"
