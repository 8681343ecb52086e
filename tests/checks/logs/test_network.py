"""Questions about the network of a job's log."""

from __future__ import annotations

import pytest

from ncclcheck.checks.logs._network import (
    VIRTUAL,
    is_cluster_name,
    is_container,
    names_in,
    unmade,
    unresolved,
    uses_roce,
    virtual_processes,
)
from ncclcheck.model.events import LogPosition, Process
from tests.checks.logs.explaining import read

GAI = "The IPv6 network addresses of (head.example, 29500) cannot be retrieved (gai error: -2 - x).\n"
GIVEN_UP = "E: The client socket has timed out after 9s while trying to connect to (head.example, 29500).\n"


def test_a_name_that_does_not_resolve_counts_where_something_failed_or_nothing_works() -> None:
    assert unresolved(read(GAI + "step 1 loss 2.0\n")) == ()
    assert names_in(unresolved(read(GAI))) == {"head.example"}
    found = unresolved(read(GAI + GIVEN_UP))
    assert names_in(found) == {"head.example"}


def test_what_was_never_resolved_was_never_dropped() -> None:
    assert unmade(read(GAI + GIVEN_UP)) == []
    assert len(unmade(read(GIVEN_UP))) == 1


@pytest.mark.parametrize(
    "name", ["docker0", "br-6c1f7d2a90be", "virbr0", "veth12ab", "tun0", "wg0", "ip6tnl0"]
)
def test_virtual_interfaces(name: str) -> None:
    assert VIRTUAL.match(name)
    assert not VIRTUAL.match("eth0")


def test_processes() -> None:
    place = LogPosition("x", 1)
    assert is_container(Process("c0ffee12ab34", 1, place))
    assert is_container(Process("n1", 1, place, address="172.17.0.2"))
    assert not is_container(Process("n1", 1, place, address="10.0.0.1"))
    log = read(
        "n1:1:1 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\n"
        "n1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]\n"
    )
    assert uses_roce(log)
    assert len(virtual_processes(log)) == 1


def test_names_of_kubernetes() -> None:
    assert is_cluster_name("m-0.m.ns.svc.cluster.local")
    assert not is_cluster_name("m-0.example.com")
