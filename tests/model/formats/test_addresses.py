"""Questions about addresses."""

from __future__ import annotations

import pytest

from ncclcheck.model.formats.addresses import family, is_link_local, is_loopback, names_this_machine, network


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.1.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_loopback(address: str, expected: bool) -> None:
    assert is_loopback(address) == expected


def test_link_local_family_and_network() -> None:
    assert is_link_local("fe80::1%eth0")
    assert is_link_local("169.254.3.1")
    assert (family("10.0.0.1"), family("fd00::1")) == ("IPv4", "IPv6")
    assert str(network("10.0.0.7", 24)) == "10.0.0.0/24"


@pytest.mark.parametrize(
    "name", ["localhost", "LOCALHOST", "localhost.localdomain", "127.0.0.1", "127.9.9.9", "::1"]
)
def test_some_names_mean_this_machine_everywhere(name: str) -> None:
    assert names_this_machine(name)


@pytest.mark.parametrize("name", ["node01", "", "10.0.0.1", "localhost2", "fd00::1", "my.localhost.net"])
def test_others_may_mean_it_only_here(name: str) -> None:
    assert not names_this_machine(name)


def test_a_scope_does_not_hide_a_loopback_address() -> None:
    assert is_loopback("::1%lo")
    assert not is_loopback("fe80::1%eth0")
