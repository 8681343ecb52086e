"""Interfaces as the kernel has them: kinds, flags, order, and nothing invented."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.network.interface_kind import LinkSigns, kind_of, tunnel_of
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.facts.network.link_driver import hardware_type_of
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface, InterfaceKind
from tests.facts.namespace import Namespace


def test_the_loopback_of_this_machine_is_as_everywhere() -> None:
    (loopback,) = [interface for interface in read_interfaces() if interface.name == "lo"]
    assert (loopback.index, loopback.kind, loopback.type) == (1, "loopback", 772)
    assert loopback.running
    assert {"up", "loopback", "running"} <= set(loopback.flags)
    assert loopback.addresses[0].address == "127.0.0.1"
    assert loopback.addresses[0].prefix_length == 8
    assert isinstance(loopback.speed_mbps, Missing)
    assert isinstance(loopback.pci, Missing)


def test_interfaces_survive_the_journey_as_json() -> None:
    interfaces = read_interfaces()
    assert decode(encode(interfaces), tuple[Interface, ...]) == interfaces


def test_a_container_that_hides_sys_still_gets_types_flags_and_addresses(tmp_path: Path) -> None:
    (seen,) = [interface for interface in read_interfaces() if interface.name == "lo"]
    (hidden,) = [interface for interface in read_interfaces(tmp_path) if interface.name == "lo"]
    assert hidden.kind == "loopback"
    assert isinstance(hidden.operstate, Missing)
    assert isinstance(hidden.speed_mbps, Missing)
    assert (hidden.type, hidden.flags, hidden.addresses) == (seen.type, seen.flags, seen.addresses)


@pytest.mark.parametrize(
    ("signs", "kind", "tunnel"),
    [
        (LinkSigns(772, "", "", False), "loopback", None),
        (LinkSigns(32, "", "mlx5_core", True), "ipoib", None),
        (LinkSigns(32, "", "", False), "ipoib", None),
        (LinkSigns(1, "", "mlx5_core", True), "physical", None),
        (LinkSigns(1, "bond", "bonding", False, has_bonding=True), "bond", None),
        (LinkSigns(1, "", "team", False), "bond", None),
        (LinkSigns(1, "bridge", "bridge", False, has_bridge=True), "bridge", None),
        (LinkSigns(1, "vlan", "802.1Q VLAN Support", False), "vlan", None),
        (LinkSigns(1, "", "", False, has_vlan=True), "vlan", None),
        (LinkSigns(1, "", "veth", False), "virtual", "veth"),
        (LinkSigns(1, "", "macvlan", False), "virtual", "macvlan"),
        (LinkSigns(1, "", "dummy", False), "virtual", "dummy"),
        (LinkSigns(1, "vxlan", "vxlan", False), "virtual", "vxlan"),
        (LinkSigns(65534, "wireguard", "wireguard", False), "virtual", "wireguard"),
        (LinkSigns(65534, "", "tun", False, has_tun_flags=True), "virtual", "tun"),
        (LinkSigns(1, "", "openvswitch", False), "virtual", "openvswitch"),
        (LinkSigns(778, "", "", False), "virtual", "gre"),
        (LinkSigns(1, "", "", False), "virtual", None),
    ],
)
def test_the_kind_follows_from_what_the_kernel_says(
    signs: LinkSigns, kind: InterfaceKind, tunnel: str | None
) -> None:
    assert kind_of(signs) == kind
    assert tunnel_of(signs) == tunnel


def test_the_type_is_known_without_sys() -> None:
    assert hardware_type_of("lo") == 772
    assert isinstance(hardware_type_of("nothing0"), Missing)


@pytest.mark.lab
def test_kinds_order_and_states_of_real_interfaces() -> None:
    with Namespace() as node:
        node.ip(
            "link set lo up",
            "link add docker0 type bridge",
            "addr add 172.17.0.1/16 dev docker0",
            "link set docker0 up",
            "link add eth1 type veth peer name far1",
            "link add eth0 type veth peer name far0",
            "addr add 10.0.1.1/24 dev eth1",
            "addr add 10.0.0.1/24 dev eth0",
            "addr add fd00::1/64 dev eth0 nodad",
            "link set eth0 mtu 9000",
            "link set eth0 up",
            "link set eth1 up",
            "link set far0 up",
            "link set far0 master docker0",
            "link add mac0 link eth0 type macvlan",
            "tuntap add tap0 mode tap",
        )
        found = {
            interface.name: interface
            for interface in decode(
                encode(node.evaluate("network.interfaces", "read_interfaces()")), tuple[Interface, ...]
            )
        }
    assert list(found)[:2] == ["lo", "docker0"]
    assert sorted(found, key=lambda name: found[name].index) == list(found)
    kinds = {name: (interface.kind, interface.tunnel) for name, interface in found.items()}
    assert kinds == {
        "lo": ("loopback", None),
        "docker0": ("bridge", None),
        "far1": ("virtual", "veth"),
        "eth1": ("virtual", "veth"),
        "far0": ("virtual", "veth"),
        "eth0": ("virtual", "veth"),
        "mac0": ("virtual", "macvlan"),
        "tap0": ("virtual", "tun"),
    }
    eth0, eth1 = found["eth0"], found["eth1"]
    assert (eth0.running, eth0.operstate, eth0.mtu) == (True, "up", 9000)
    assert [(address.family, address.address, address.prefix_length) for address in eth0.addresses][:2] == [
        ("inet", "10.0.0.1", 24),
        ("inet6", "fd00::1", 64),
    ]
    assert eth0.addresses[-1].address.startswith("fe80::")
    assert eth0.addresses[-1].scope_id == eth0.index
    assert ("up" in eth1.flags, eth1.running, eth1.operstate) == (True, False, "lowerlayerdown")
    assert ("up" in found["far1"].flags, found["far1"].running) == (False, False)
    assert (found["far0"].master, found["docker0"].lower, found["mac0"].lower) == (
        "docker0",
        ("far0",),
        ("eth0",),
    )
    assert eth0.speed_mbps == 10_000  # what veth claims; judging it is not the reader's task
    assert isinstance(found["far1"].speed_mbps, Missing)


@pytest.mark.lab
def test_alias_labels_keep_the_order_of_the_kernel() -> None:
    with Namespace() as node:
        node.ip(
            "link add eth0 type veth peer name far0",
            "addr add 10.0.0.1/24 dev eth0 label eth0:7",
            "addr add 10.0.1.1/24 dev eth0",
        )
        found = decode(
            encode(node.evaluate("network.interfaces", "read_interfaces()")), tuple[Interface, ...]
        )
    (eth0,) = [interface for interface in found if interface.name == "eth0"]
    assert [(address.label, address.address) for address in eth0.addresses] == [
        ("eth0:7", "10.0.0.1"),
        ("eth0", "10.0.1.1"),
    ]
    assert {interface.name for interface in found} == {"lo", "far0", "eth0"}
