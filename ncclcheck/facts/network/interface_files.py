"""Reads what /sys shows of one network interface, on this machine and in a recorded tree alike."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.network.interface_kind import LinkSigns, kind_of, tunnel_of
from ncclcheck.facts.pci.pci_address import pci_of
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import NOT_TOLD, Fact, Missing
from ncclcheck.model.facts import Address, Interface

SYSFS_NET = "sys/class/net"
_SPEED_UNKNOWN = {-1, 0, 0xFFFFFFFF}  # SPEED_UNKNOWN of linux/ethtool.h, signed and unsigned
_VLAN_CONFIG = "proc/net/vlan/config"


class InterfaceReading(Struct, frozen=True):
    """What is known of an interface without its folder in /sys, or is read from there by the caller."""

    name: str
    index: int
    mtu: Fact[int]
    flags: tuple[str, ...]
    running: bool
    addresses: tuple[Address, ...]
    driver: Fact[str]
    type: Fact[int]


def complete(here: Folder, reading: InterfaceReading) -> Interface:
    """Return the interface with all that the /sys of `here` says of it.

    Where that is hidden, its values are missing.
    """
    folder = here.folder(f"{SYSFS_NET}/{reading.name}")
    if isinstance(folder, Missing):
        return _without_sys(reading, folder)
    driver = read_driver(folder)
    driver = reading.driver if isinstance(driver, Missing) and isinstance(reading.driver, str) else driver
    signs = _signs(here, folder, reading, driver)
    device = folder.folder("device")
    return replace(
        _without_sys(reading, NOT_TOLD),
        kind=kind_of(signs),
        operstate=folder.line("operstate"),
        speed_mbps=read_speed(folder),
        pci=pci_of(folder),
        driver=driver,
        master=_master(folder),
        lower=_lower(folder),
        is_vf=not isinstance(device, Missing) and device.has("physfn"),
        tunnel=tunnel_of(signs),
    )


def _without_sys(reading: InterfaceReading, why: Missing) -> Interface:
    signs = LinkSigns(
        type=-1 if isinstance(reading.type, Missing) else reading.type,
        devtype="",
        driver="" if isinstance(reading.driver, Missing) else reading.driver,
        has_device=False,
    )
    return Interface(
        name=readable(reading.name),
        index=reading.index,
        kind=kind_of(signs),
        type=reading.type,
        mtu=reading.mtu,
        operstate=why,
        flags=reading.flags,
        running=reading.running,
        addresses=reading.addresses,
        speed_mbps=why,
        pci=why,
        driver=reading.driver,
        tunnel=tunnel_of(signs),
    )


def read_driver(folder: Folder) -> Fact[str]:
    """Return the name of the driver that the device behind the interface is bound to."""
    device = folder.folder("device")
    return device if isinstance(device, Missing) else device.link_name("driver")


def read_speed(folder: Folder) -> Fact[int]:
    """Return the link speed in Mbit/s that the driver says; Missing where it says none, as without a carrier."""
    speed = folder.number("speed")
    if isinstance(speed, Missing):
        if speed.missing == "error":  # EINVAL: the driver has no answer, or the interface is down
            return Missing("unsupported", speed.detail)
        return speed
    if speed in _SPEED_UNKNOWN:
        return Missing("absent", f"{folder.shown('speed')}: {speed}, the driver does not know it")
    return speed


def _signs(here: Folder, folder: Folder, reading: InterfaceReading, driver: Fact[str]) -> LinkSigns:
    uevent = folder.text("uevent")
    words = dict(line.partition("=")[::2] for line in uevent.splitlines()) if isinstance(uevent, str) else {}
    return LinkSigns(
        type=-1 if isinstance(reading.type, Missing) else reading.type,
        devtype=words.get("DEVTYPE", ""),
        driver="" if isinstance(driver, Missing) else driver,
        has_device=folder.has("device") or _is_below_a_bus(folder),
        has_bonding=folder.has("bonding"),
        has_bridge=folder.has("bridge"),
        has_tun_flags=folder.has("tun_flags"),
        has_vlan=reading.name in _vlans(here),
    )


def _is_below_a_bus(folder: Folder) -> bool:
    """Return whether the folder lies below a device; what software made lies in /sys/devices/virtual."""
    parts = folder.path.relative_to(folder.root).parts
    return parts[:2] == ("sys", "devices") and parts[2:3] != ("virtual",)


def _vlans(here: Folder) -> frozenset[str]:
    """Return the names in the first column of /proc/net/vlan/config, which only root may read."""
    text = here.text(_VLAN_CONFIG)
    lines = text.splitlines()[2:] if isinstance(text, str) else []
    return frozenset(line.partition("|")[0].strip() for line in lines)


def _master(folder: Folder) -> str | None:
    master = folder.link_name("master")
    if isinstance(master, Missing):  # before Linux 3.9 only bridges left a trace in the port's folder
        port = folder.folder("brport")
        master = port if isinstance(port, Missing) else port.link_name("bridge")
    return None if isinstance(master, Missing) else master


def _lower(folder: Folder) -> tuple[str, ...]:
    names = folder.names()
    listed = () if isinstance(names, Missing) else names
    return tuple(readable(name.removeprefix("lower_")) for name in listed if name.startswith("lower_"))
