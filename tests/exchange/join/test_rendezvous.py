"""Who serves torch's c10d store: decided as torch decides it, on this machine."""

from __future__ import annotations

import socket

import psutil
import pytest
from msgspec.structs import replace

from ncclcheck.exchange.join.rendezvous import placed, takes_itself_for_host
from ncclcheck.model.launch import NOT_RANKED, Launch

OWN = [
    address.address
    for addresses in psutil.net_if_addrs().values()
    for address in addresses
    if address.family == socket.AF_INET and not address.address.startswith("127.")
]
LINE = Launch("launch-line", NOT_RANKED, 2, 0, 1, NOT_RANKED, 2, "localhost", 29400, rendezvous="c10d")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "192.0.2.77",
        "no-such.invalid",
        socket.gethostname(),
        *OWN,
    ],
)
def test_the_rule_is_torchs(host: str) -> None:
    utils = pytest.importorskip("torch.distributed.elastic.rendezvous.utils", reason="torch is not installed")
    assert takes_itself_for_host(host) is utils._matches_machine_hostname(host)


def test_who_takes_itself_for_the_host_is_node_0() -> None:
    launch = placed(LINE, frozenset())
    assert (launch.node_rank, launch.rank, launch.serves_store) == (0, 0, True)


def test_who_is_not_called_gets_its_rank_later() -> None:
    launch = placed(replace(LINE, master_addr="192.0.2.77"), frozenset({"10.0.0.1"}))
    assert (launch.node_rank, launch.serves_store) == (NOT_RANKED, False)


def test_who_has_the_address_is_node_0_though_torch_does_not_notice() -> None:
    launch = placed(replace(LINE, master_addr="192.0.2.77"), frozenset({"192.0.2.77"}))
    assert (launch.node_rank, launch.serves_store) == (0, False)


def test_is_host_decides() -> None:
    told_not = placed(replace(LINE, serves_store=False), frozenset())
    assert (told_not.node_rank, told_not.serves_store) == (NOT_RANKED, False)
    told = placed(replace(LINE, serves_store=True, master_addr="192.0.2.77"), frozenset())
    assert (told.node_rank, told.serves_store) == (0, True)
