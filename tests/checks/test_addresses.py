"""Questions about addresses."""

from __future__ import annotations

import pytest

from ncclcheck.checks.addresses import family, is_link_local, is_loopback, network


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
