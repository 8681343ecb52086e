"""Reads the network interfaces of this machine: addresses in the kernel's order, flags, and what /sys says of each."""

from __future__ import annotations

import socket
from pathlib import Path

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.network.interface_files import SYSFS_NET, InterfaceReading, complete
from ncclcheck.facts.network.interfaces_of_tree import read_interface_files
from ncclcheck.facts.network.link_driver import driver_of, flags_of, hardware_type_of, mtu_of
from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Address, Family, Interface

_FAMILIES: dict[int, Family] = {socket.AF_INET: "inet", socket.AF_INET6: "inet6"}


def read_interfaces(root: Path = Path("/")) -> tuple[Interface, ...]:
    """Return every interface of this network namespace, in the order getifaddrs(3) lists the links.

    NCCL scans addresses in that order (src/misc/socket.cc), so the order is part of the fact. An interface that
    vanishes while it is read is left out. `root` is where /sys is looked for.
    """
    import netifaces

    here = machine(root)
    known = addresses_by_interface()
    found = []
    for name in netifaces.interfaces():
        if ":" in name:  # an alias label belongs to its interface
            continue
        try:
            index = socket.if_nametoindex(name)
            # Of the kernel itself: a hardened container hides /proc/net/dev, where psutil looks.
            flags, mtu = flags_of(name), mtu_of(name)
        except (OSError, ValueError):  # what these calls raise for a name that is no more
            continue
        reading = InterfaceReading(
            name=name,
            index=index,
            mtu=mtu,
            flags=flags,
            running="running" in flags,
            addresses=known.get(name, ()),
            driver=driver_of(name),
            type=_type_of(here, name),
        )
        found.append(complete(here, reading))
    return tuple(found)


def interfaces_now() -> Fact[tuple[Interface, ...]]:
    """Return the same; Missing where this process may not ask the kernel for them."""
    try:
        return read_interfaces()
    except Exception as error:  # netifaces and psutil raise what they like
        return missing_for(error, "the interfaces")


def _type_of(here: Folder, name: str) -> Fact[int]:
    """Return the ARPHRD_ number; a container may hide /sys, the kernel still answers."""
    hardware_type = here.number(f"{SYSFS_NET}/{name}/type")
    return hardware_type_of(name) if isinstance(hardware_type, Missing) else hardware_type


def addresses_by_interface() -> dict[str, tuple[Address, ...]]:
    """Return the addresses of each interface that has any, IPv4 before IPv6 as the kernel dumps them.

    They are asked for once: a Kubernetes node has hundreds of interfaces.
    """
    import psutil

    found: dict[str, list[Address]] = {}
    # It sorts by family but keeps the kernel's order within one; an alias label belongs to its interface.
    for label, entries in psutil.net_if_addrs().items():
        for entry in entries:
            family = _FAMILIES.get(entry.family)
            if family is not None and entry.address:
                address = _address(family, label, entry.address, entry.netmask or "")
                found.setdefault(label.partition(":")[0], []).append(address)
    return {
        name: tuple(sorted(addresses, key=lambda address: address.family))
        for name, addresses in found.items()
    }


def addresses_now() -> frozenset[str]:
    """Return every address of this machine; none where this process may not ask the kernel for them."""
    try:
        known = addresses_by_interface()
    except Exception:  # psutil raises what it likes
        return frozenset()
    return frozenset(address.address for addresses in known.values() for address in addresses)


def addresses_of(interfaces: Fact[tuple[Interface, ...]]) -> frozenset[str]:
    """Return every address of a node, by its facts."""
    if isinstance(interfaces, Missing):
        return frozenset()
    return frozenset(address.address for interface in interfaces for address in interface.addresses)


def _address(family: Family, label: str, text: str, netmask: str) -> Address:
    """Return one address from psutil's words: `fe80::1%eth0` with netmask `ffff:ffff:ffff:ffff::`."""
    address, _, scope = text.partition("%")
    scope_id = 0
    if scope:
        try:
            scope_id = int(scope) if scope.isdigit() else socket.if_nametoindex(scope)
        except OSError:  # the interface has just gone
            scope_id = 0
    return Address(family, address, _prefix_length(family, netmask), readable(label), scope_id)


def _prefix_length(family: Family, netmask: str) -> int:
    mask, _, length = netmask.partition("/")
    if length:
        return int(length)
    number = socket.AF_INET if family == "inet" else socket.AF_INET6
    if not mask:  # a point-to-point address stands alone
        return 32 if family == "inet" else 128
    return int.from_bytes(socket.inet_pton(number, mask), "big").bit_count()


INTERFACES = Section(
    {
        "interfaces": "getifaddrs(3); /sys/class/net; of a recorded tree the last only, without addresses",
    },
    read=lambda _: read_interfaces(),
    read_tree=read_interface_files,
)
