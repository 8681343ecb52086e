"""The kernel's own choice of source address, without sending anything."""

from __future__ import annotations

import pytest

from ncclcheck.facts.network.routes import owner_of, source_for
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Address, Interface
from tests.facts.namespace import Namespace


def _interface(name: str, index: int, *addresses: str) -> Interface:
    return Interface(
        name=name,
        index=index,
        kind="physical",
        type=1,
        mtu=1500,
        operstate="up",
        flags=("up", "running"),
        running=True,
        addresses=tuple(Address("inet", address, 24, name) for address in addresses),
        speed_mbps=10_000,
        pci="0000:01:00.0",
        driver="x",
    )


def test_the_loopback_is_reached_from_the_loopback() -> None:
    assert source_for("127.0.0.1") == ("127.0.0.1", "lo")


@pytest.mark.parametrize("address", ["node01", "10.0.0.1/24", "", "1:2"])
def test_what_is_no_address_is_said_not_raised(address: str) -> None:
    source, interface = source_for(address)
    assert isinstance(source, Missing)
    assert source == interface
    assert address in source.detail


def test_an_address_on_two_interfaces_has_no_single_owner() -> None:
    interfaces = [_interface("eth0", 2, "10.0.0.1"), _interface("eth1", 3, "10.0.0.1", "10.0.1.1")]
    twice = owner_of("10.0.0.1", interfaces)
    assert isinstance(twice, Missing)
    assert "eth0 and eth1" in twice.detail
    assert owner_of("10.0.0.1", interfaces, scope_id=3) == "eth1"
    assert owner_of("10.0.1.1", interfaces) == "eth1"
    assert isinstance(owner_of("10.0.2.1", interfaces), Missing)


@pytest.mark.lab
def test_the_route_decides_over_the_order_of_interfaces() -> None:
    with Namespace() as node:
        node.ip(
            "link set lo up",
            "link add eth0 type veth peer name far0",
            "link add eth1 type veth peer name far1",
            *(f"link set {name} up" for name in ("eth0", "eth1", "far0", "far1")),
            "addr add 10.1.0.1/24 dev eth0",
            "addr add 10.2.0.1/24 dev eth1",
            "addr add fd00:2::1/64 dev eth1 nodad",
            "route add 10.3.0.0/16 via 10.2.0.9",
        )
        assert node.evaluate("network.routes", "source_for('10.1.0.7')") == ["10.1.0.1", "eth0"]
        assert node.evaluate("network.routes", "source_for('10.3.9.9', 29500)") == ["10.2.0.1", "eth1"]
        assert node.evaluate("network.routes", "source_for('fd00:2::7')") == ["fd00:2::1", "eth1"]
        nowhere, _ = node.evaluate("network.routes", "source_for('192.0.2.1')")
        assert nowhere == {"missing": "absent", "detail": "no route to 192.0.2.1: Network is unreachable"}
