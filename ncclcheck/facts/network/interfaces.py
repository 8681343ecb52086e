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


def read_interfaces(root: Path = Path("/")) -> tuple[Interface, ...]:
    """Return every interface of this network namespace, in the order getifaddrs(3) lists the links.

    NCCL scans addresses in that order (src/misc/socket.cc), so the order is part of the fact. An interface that
    vanishes while it is read is left out. `root` is where /sys is looked for.
    """
    import netifaces
    import psutil

    here = machine(root)
    # psutil sorts by family but keeps the kernel's order within one; netifaces lists alias labels last.
    labels = list(psutil.net_if_addrs())
    found = []
    for name in netifaces.interfaces():
        if ":" in name:  # an alias label belongs to its interface
            continue
        try:
            own_labels = [label for label in labels if label.partition(":")[0] == name] or [name]
            addresses = _read_addresses(own_labels)
            index = socket.if_nametoindex(name)
            # Of the kernel itself: a hardened container hides /proc/net/dev, where psutil looks.
            flags, mtu = flags_of(name), mtu_of(name)
        except (OSError, ValueError):  # what these calls raise for a name that is no more
            continue
        told = InterfaceReading(
            name=name,
            index=index,
            mtu=mtu,
            flags=flags,
            running="running" in flags,
            addresses=addresses,
            driver=driver_of(name),
            type=_type_of(here, name),
        )
        found.append(complete(here, told))
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


def _read_addresses(labels: list[str]) -> tuple[Address, ...]:
    """Return the addresses of one interface, IPv4 before IPv6 as the kernel dumps them."""
    import netifaces

    by_label = [(label, netifaces.ifaddresses(label)) for label in labels]
    families: tuple[tuple[Family, int], ...] = (("inet", netifaces.AF_INET), ("inet6", netifaces.AF_INET6))
    return tuple(
        _address(family, label, entry)
        for family, number in families
        for label, entries in by_label
        for entry in entries.get(number, ())
        if "addr" in entry
    )


def _address(family: Family, label: str, entry: dict[str, str]) -> Address:
    """Return one address from netifaces' words: `fe80::1%eth0` with netmask `ffff:ffff:ffff:ffff::/64`."""
    address, _, scope = entry["addr"].partition("%")
    scope_id = 0
    if scope:
        scope_id = int(scope) if scope.isdigit() else socket.if_nametoindex(scope)
    prefix_length = _prefix_length(family, entry.get("netmask", ""))
    return Address(family, address, prefix_length, readable(label), scope_id)


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
        "interfaces": "getifaddrs(3) (netifaces); /sys/class/net; of a recorded tree the last only, without addresses",
    },
    read=lambda _: read_interfaces(),
    read_tree=read_interface_files,
)
