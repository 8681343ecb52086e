"""The kernel tells drivers and types of interfaces, also those that /sys says nothing about."""

from __future__ import annotations

import os

import pytest

from ncclcheck.facts.network.link_driver import driver_of, hardware_type_of
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from tests.facts.namespace import Namespace


def test_the_loopback_has_its_type_and_no_driver_of_a_card() -> None:
    assert hardware_type_of("lo") == 772
    assert driver_of("lo") not in ("mlx5_core", "veth")


@pytest.mark.parametrize("name", ["nothing0", "", "x" * 40, os.fsdecode(b"eth\xff")])
def test_a_name_that_no_interface_has_is_missing_and_can_be_reported(name: str) -> None:
    for fact in (driver_of(name), hardware_type_of(name)):
        assert isinstance(fact, Missing)
        assert encode(fact)


@pytest.mark.lab
def test_software_devices_tell_what_they_are() -> None:
    with Namespace() as node:
        node.ip("link add v0 type veth peer name v1", "link add br0 type bridge")
        assert node.evaluate("network.link_driver", "[driver_of('v0'), driver_of('br0')]") == [
            "veth",
            "bridge",
        ]
        assert node.evaluate("network.link_driver", "hardware_type_of('v0')") == 1
