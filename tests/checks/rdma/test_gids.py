"""What a GID is."""

from __future__ import annotations

import pytest

from ncclcheck.checks.rdma import _gids as gids
from ncclcheck.model.hardware import Gid
from tests.fact_builders import interface
from tests.nccl.hardware import LINK_LOCAL, ROCE_GIDS, UNREAD, gid, port, roce

V6 = "fd00:0000:0000:0000:0000:0000:0000:0001"


@pytest.mark.parametrize(
    ("one", "kind", "address"),
    [
        (gid(3, "10.0.0.1"), "RoCE v2, IPv4", "10.0.0.1"),
        (gid(2, "10.0.0.1", "v1"), "RoCE v1, IPv4", "10.0.0.1"),
        (gid(5, V6), "RoCE v2, IPv6", "fd00::1"),
        (gid(0, LINK_LOCAL, "v1"), "RoCE v1, link-local", "fe80::a288:c2ff:fe10:20"),
        (gid(7, "10.0.0.1", UNREAD), "RoCE of unknown version, IPv4", "10.0.0.1"),
        (Gid(0, "nonsense", "RoCE v2", UNREAD), "RoCE v2, IPv6", "nonsense"),
    ],
)
def test_kind_and_address(one: Gid, kind: str, address: str) -> None:
    assert (gids.kind(one), gids.address(one)) == (kind, address)


def test_the_subnet_is_that_of_the_interface_with_the_address() -> None:
    interfaces = (interface("eth0", "10.0.0.1/24"), interface("eth1", "10.0.0.1/32", "fd00::1/64"))
    assert gids.subnet(gid(3, "10.0.0.1"), interfaces) == "10.0.0.0/24"
    assert gids.subnet(gid(3, "10.0.0.1"), interfaces[1:]) is None
    assert gids.subnet(gid(3, V6), interfaces) == "fd00::/64"
    assert gids.subnet(gid(3, "10.0.0.2"), interfaces) is None


def test_an_unset_index_is_told_from_a_table_that_was_not_read() -> None:
    assert gids.entry_of(roce(), 3) == ROCE_GIDS[3]
    assert gids.entry_of(roce(), 4) is None
    assert gids.is_table_readable(roce(gids=()))
    assert not gids.is_table_readable(roce(gids=(), gid_table_length=UNREAD))
    assert not gids.is_table_readable(roce(gids=UNREAD))


def test_routable_entries_come_with_ipv4_first() -> None:
    table = (gid(0, LINK_LOCAL), gid(1, V6), gid(2, "10.0.0.1", "v1"), gid(3, "10.0.0.1"))
    assert [one.index for one in gids.better(roce(gids=table))] == [3, 1]


def test_the_subnet_prefix_of_infiniband() -> None:
    assert gids.subnet_prefix(port()) == "fe80:0000:0000:0000"
    assert gids.subnet_prefix(port(gids=())) is None
