"""Reads the network interfaces of a recorded machine from its /sys, which has no addresses."""

from __future__ import annotations

from ncclcheck.facts.network.interface_files import SYSFS_NET, InterfaceReading, complete
from ncclcheck.facts.tree import Folder, natural
from ncclcheck.model.fact import NOT_IN_A_TREE, Fact, Missing
from ncclcheck.model.facts import Interface

# linux/if.h; IFF_RUNNING (0x40) is never in the file.
_FLAGS = {
    0x1: "up",
    0x2: "broadcast",
    0x4: "debug",
    0x8: "loopback",
    0x10: "pointopoint",
    0x20: "notrailers",
    0x80: "noarp",
    0x100: "promisc",
    0x200: "allmulti",
    0x400: "master",
    0x800: "slave",
    0x1000: "multicast",
    0x2000: "portsel",
    0x4000: "automedia",
    0x8000: "dynamic",
}


def read_interface_files(here: Folder) -> Fact[tuple[Interface, ...]]:
    """Return the interfaces in /sys/class/net in the order of their indexes; /sys has no addresses."""
    names = here.names(SYSFS_NET)
    if isinstance(names, Missing):
        return names
    found = [
        complete(here, _reading(name, folder))
        for name in names
        if not isinstance(folder := here.folder(f"{SYSFS_NET}/{name}"), Missing)
    ]
    return tuple(
        sorted(found, key=lambda interface: (interface.index == 0, interface.index, natural(interface.name)))
    )


def _reading(name: str, folder: Folder) -> InterfaceReading:
    flags, index = folder.number("flags"), folder.number("ifindex")
    names = () if isinstance(flags, Missing) else tuple(word for bit, word in _FLAGS.items() if flags & bit)
    running = "up" in names and _is_operational(folder)
    return InterfaceReading(
        name=name,
        index=0 if isinstance(index, Missing) else index,
        mtu=folder.number("mtu"),
        flags=(*names, "running") if running else names,
        running=running,
        addresses=(),
        driver=NOT_IN_A_TREE,
        type=folder.number("type"),
    )


def _is_operational(folder: Folder) -> bool:
    """Return IFF_RUNNING of an interface that is up: its state is up or unknown (netif_oper_up)."""
    state = folder.line("operstate")
    return state in ("up", "unknown") if isinstance(state, str) else folder.number("carrier") == 1
