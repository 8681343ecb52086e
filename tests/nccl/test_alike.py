"""What the model says of nodes that are alike is what it says of each of them alone."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile, NodeFacts
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.hardware import Gid
from ncclcheck.nccl import alike
from ncclcheck.nccl.explanation import _explained_under, explain
from ncclcheck.nccl.prediction import predict, predict_changed
from tests.fact_builders import answer, docker0, interface, loopback, nccl_choice, node_facts, some
from tests.further import mostly_further
from tests.hardware_builders import healthy_kernel, healthy_pci, healthy_rdma, ib_ports, roce_ports
from tests.nccl.hardware import gid

PCI = healthy_pci()
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {},
    {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "INFO"},
    {"NCCL_SOCKET_FAMILY": "AF_INET6"},
    {"NCCL_COMM_ID": "10.0.0.2:4000"},
    {"NCCL_IB_ADDR_RANGE": "10.1.0.0/16"},
    {"NCCL_IB_GID_INDEX": "0"},
    {"NCCL_IB_DISABLE": "1"},
    {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "=nope"},
)


def facts(rank: int, environment: dict[str, str], network: str, *, asked: bool) -> NodeFacts:
    """A node that differs from the others of its kind in nothing but its addresses, GUIDs and LIDs."""
    address, wide = f"10.0.0.{rank + 1}", f"fd00:1::{rank + 1:x}"
    linklocal = f"fe80::a288:c2ff:fe10:{rank + 1:x}"
    eth0 = interface("eth0", f"{address}/24", f"{wide}/64", f"{linklocal}/64")
    choice = nccl_choice(answer(address, "eth0"))
    ports = ib_ports() if network == "ib" else roce_ports(rank)
    ports = tuple(
        replace(
            port,
            lid=number + 8 * rank,
            node_guid=f"a088:{rank:04x}",
            gids=(_own_link(rank), *some(port.gids)[1:]),
        )
        if not isinstance(port.gids, tuple) or network == "roce"
        else replace(port, lid=number + 8 * rank, node_guid=f"a088:{rank:04x}")
        for number, port in enumerate(ports)
    )
    return replace(
        node_facts(rank, 3),
        environment={"RANK": str(rank), **environment},
        interfaces=(loopback(), eth0, interface("eth1", f"10.1.0.{rank + 1}/16", index=4), docker0()),
        nccl=choice if asked else replace(choice, asked=answer(None, None)),
        rdma=healthy_rdma(*ports),
        pci=PCI,
        kernel=healthy_kernel(),
    )


def _own_link(rank: int) -> Gid:
    return gid(0, f"fe80:0000:0000:0000:a288:c2ff:fe10:{rank + 1:04x}", "v1")


@pytest.mark.parametrize(
    ("environment", "network"),
    mostly_further(product(ENVIRONMENTS, ("ib", "roce")), 6),  # mark.further
)
def test_each_node_gets_what_the_model_says_of_it_alone(environment: dict[str, str], network: str) -> None:
    for asked, rank in product((True, False), range(12)):
        own = facts(rank, environment, network, asked=asked)
        assert explain(own) == _explained_under(own, None)
        for change in (
            {},
            {"NCCL_SOCKET_IFNAME": "=eth1"},
            {"NCCL_COMM_ID": "10.1.0.3:1"},
            {"NCCL_NET": None},
        ):
            assert predict_changed(own, change) == predict(own, changes=change)


SETTINGS: tuple[dict[str, str] | None, ...] = (
    None,
    {"NCCL_SOCKET_IFNAME": "eth1"},
    {"NCCL_COMM_ID": "10.0.0.2:4000"},
)


@pytest.mark.parametrize("settings", SETTINGS)
def test_config_files_make_no_difference_to_that(settings: dict[str, str] | None) -> None:
    for rank in range(6):
        own = _with_files(facts(rank, {}, "roce", asked=False), settings)
        assert explain(own) == _explained_under(own, None)
        assert predict_changed(own, {"NCCL_IB_DISABLE": "1"}) == predict(
            own, changes={"NCCL_IB_DISABLE": "1"}
        )


def _with_files(node: NodeFacts, settings: dict[str, str] | None) -> NodeFacts:
    """The files that every node is asked for: there is none for the user, and one for the system or none (None)."""
    absent = Missing("absent", "No such file or directory")
    files = (
        NcclConfigFile("/root/.nccl.conf", absent),
        NcclConfigFile("/etc/nccl.conf", absent if settings is None else settings),
    )
    return replace(node, nccl=replace(some(node.nccl), config_files=files))


def _kind(node: NodeFacts) -> object:
    found = alike._alike(SameObject(node))
    assert found is not None
    return found.kind


def test_nodes_that_differ_in_their_addresses_are_alike() -> None:
    nodes = [facts(rank, {}, "roce", asked=True) for rank in range(9)]
    assert len({_kind(node) for node in nodes}) == 1
    assert len({_kind(_with_files(node, {"NCCL_DEBUG": "WARN"})) for node in nodes}) == 1


@pytest.mark.parametrize("network", ["ib", "roce"])
def test_nodes_that_differ_in_anything_else_are_not(network: str) -> None:
    plain = facts(1, {}, network, asked=True)
    others = (
        facts(1, {"NCCL_IB_HCA": "mlx5_1"}, network, asked=True),
        facts(1, {}, network, asked=False),
        replace(plain, interfaces=(loopback(), interface("eth0", "10.0.0.2/25"))),
        replace(plain, rdma=healthy_rdma(*ib_ports()[:7])),
        replace(plain, pci=healthy_pci()),
        _with_files(plain, None),
        _with_files(plain, {"NCCL_IB_HCA": "mlx5_1"}),
    )
    assert len({_kind(node) for node in (plain, *others)}) == 1 + len(others)
