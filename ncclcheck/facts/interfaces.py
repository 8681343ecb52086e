"""Reads the network interfaces: addresses in the kernel's order, flags, and what /sys knows of each."""

from __future__ import annotations

import socket
from pathlib import Path

from ncclcheck.facts.deadline import missing_for
from ncclcheck.facts.files import link_target, read_line, read_number, read_text, readable
from ncclcheck.facts.interface_kind import LinkSigns, kind_of, tunnel_of
from ncclcheck.facts.link_driver import driver_of, hardware_type_of
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Address, Family, Interface

SYSFS_NET = Path("/sys/class/net")
_SPEED_UNKNOWN = {-1, 0, 0xFFFFFFFF}  # SPEED_UNKNOWN of linux/ethtool.h, signed and unsigned


def read_interfaces(sysfs: Path = SYSFS_NET) -> tuple[Interface, ...]:
    """Every interface of this network namespace, in the order getifaddrs(3) lists the links.

    NCCL scans addresses in that order (src/misc/socket.cc), so the order is part of the fact. An interface that
    vanishes while it is read is left out.
    """
    import netifaces
    import psutil

    stats = psutil.net_if_stats()
    # psutil sorts by family but keeps the kernel's order within one; netifaces lists alias labels last.
    labels = list(psutil.net_if_addrs())
    found = []
    for name in netifaces.interfaces():
        # An alias label belongs to its interface; one without statistics has just gone.
        if ":" in name or name not in stats:
            continue
        try:
            own_labels = [label for label in labels if label.partition(":")[0] == name] or [name]
            addresses = _read_addresses(own_labels)
            index = socket.if_nametoindex(name)
        except (OSError, ValueError):  # what the three calls raise for a name that is no more
            continue
        flags = tuple(flag for flag in stats[name].flags.split(",") if flag)
        found.append(_read_interface(sysfs, name, index, stats[name].mtu, flags, addresses))
    return tuple(found)


def _read_addresses(labels: list[str]) -> tuple[Address, ...]:
    """The addresses of one interface, IPv4 before IPv6 as the kernel dumps them."""
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
    """One address from netifaces' words: `fe80::1%eth0` with netmask `ffff:ffff:ffff:ffff::/64`."""
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


def _read_interface(
    sysfs: Path, name: str, index: int, mtu: int, flags: tuple[str, ...], addresses: tuple[Address, ...]
) -> Interface:
    folder = sysfs / name
    driver = link_target(folder / "device" / "driver")
    if isinstance(driver, Missing):
        driver = driver_of(name)
    signs = _read_signs(folder, name, driver)
    operstate = read_line(folder / "operstate")
    master = link_target(folder / "master")
    return Interface(
        name=readable(name),
        index=index,
        kind=kind_of(signs),
        type=signs.type,
        mtu=mtu,
        operstate=operstate if isinstance(operstate, str) else "unknown",  # the kernel's own word (RFC 2863)
        flags=flags,
        running="running" in flags,
        addresses=addresses,
        speed_mbps=read_speed(folder),
        pci=read_pci(folder),
        driver=driver,
        master=None if isinstance(master, Missing) else master,
        lower=_lower(folder),
        is_vf=(folder / "device" / "physfn").exists(),
        tunnel=tunnel_of(signs),
    )


def _read_signs(folder: Path, name: str, driver: Fact[str]) -> LinkSigns:
    hardware_type = read_number(folder / "type")
    if isinstance(hardware_type, Missing):  # a container may hide /sys; the kernel still answers
        hardware_type = hardware_type_of(name)
    uevent = read_text(folder / "uevent")
    words = dict(line.partition("=")[::2] for line in uevent.splitlines()) if isinstance(uevent, str) else {}
    return LinkSigns(
        type=-1 if isinstance(hardware_type, Missing) else hardware_type,
        devtype=words.get("DEVTYPE", ""),
        driver="" if isinstance(driver, Missing) else driver,
        has_device=(folder / "device").exists(),
        has_bonding=(folder / "bonding").exists(),
        has_bridge=(folder / "bridge").exists(),
        has_tun_flags=(folder / "tun_flags").exists(),
    )


def read_speed(folder: Path) -> Fact[int]:
    """Link speed in Mbit/s as the driver says; Missing where it says none, which is usual without a carrier."""
    speed = read_number(folder / "speed")
    if isinstance(speed, Missing):
        if speed.missing == "error":  # EINVAL: the driver has no answer, or the interface is down
            return Missing("unsupported", speed.detail)
        return speed
    if speed in _SPEED_UNKNOWN:
        return Missing("absent", f"{folder / 'speed'}: {speed}, the driver does not know it")
    return speed


def read_pci(folder: Path) -> Fact[str]:
    """PCI address of the card behind the interface, also through virtio and auxiliary devices in between."""
    try:
        device = (folder / "device").resolve(strict=True)
    except OSError as error:
        return missing_for(error, str(folder / "device"))
    for place in (device, *device.parents):
        subsystem = link_target(place / "subsystem")
        if subsystem == "pci":
            return place.name
        if subsystem == "usb":
            return Missing("absent", f"{device} is on USB")
    return Missing("absent", f"{device} is on no PCI bus")


def _lower(folder: Path) -> tuple[str, ...]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return ()
    return tuple(readable(name.removeprefix("lower_")) for name in names if name.startswith("lower_"))
