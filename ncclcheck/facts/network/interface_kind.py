"""Decides what kind of thing a network interface is, from what the kernel says about it."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.facts import InterfaceKind

_ARPHRD_INFINIBAND = 32  # linux/if_arp.h
_ARPHRD_LOOPBACK = 772
_TUNNEL_TYPES = {
    512: "ppp",
    768: "ipip",
    769: "ip6tnl",
    776: "sit",
    778: "gre",
    823: "ip6gre",
}


class LinkSigns(Struct, frozen=True):
    """Signs of the kinds: ARPHRD number, DEVTYPE of uevent, driver name, which /sys and /proc entries exist."""

    type: int
    devtype: str
    driver: str
    has_device: bool
    has_bonding: bool = False
    has_bridge: bool = False
    has_tun_flags: bool = False
    has_vlan: bool = False


def kind_of(signs: LinkSigns) -> InterfaceKind:
    """Return the kind. A device of a bus (/sys/class/net/X/device) is physical; whatever software made is virtual.

    A virtual function is physical too: it is a slice of a card, with a wire behind it.
    """
    names = {signs.devtype, signs.driver}
    if signs.type == _ARPHRD_LOOPBACK:
        return "loopback"
    if signs.type == _ARPHRD_INFINIBAND:
        return "ipoib"
    if signs.has_bonding or names & {"bond", "bonding", "team"}:
        return "bond"
    if signs.has_bridge or names & {"bridge"}:
        return "bridge"
    if signs.has_vlan or names & {"vlan", "802.1Q VLAN Support"}:  # the driver name is net/8021q/vlan_dev.c's
        return "vlan"
    return "physical" if signs.has_device else "virtual"


def tunnel_of(signs: LinkSigns) -> str | None:
    """Return what sort of virtual interface it is (veth, tun, vxlan, wireguard, ...), where anything says so."""
    if kind_of(signs) != "virtual":
        return None
    if signs.has_tun_flags:
        return "tun"
    return signs.devtype or signs.driver or _TUNNEL_TYPES.get(signs.type)
