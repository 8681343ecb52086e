"""Do GIDs of different nodes fit together?"""

from __future__ import annotations

from ncclcheck.checks.rdma._gid_agreement import GidUse, disagreements
from ncclcheck.checks.rdma_ports import PortOn
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.hardware import Gid
from tests.fact_builders import interface
from tests.nccl.hardware import gid, roce


def used(host: str, device: str, chosen: Gid, *networks: str, others: tuple[Gid, ...] = ()) -> GidUse:
    facts = NodeFacts(interfaces=tuple(interface(f"eth{at}", network) for at, network in enumerate(networks)))
    return GidUse(PortOn(host, roce(device, gids=(chosen, *others))), chosen, facts)


def test_two_nodes_that_only_differ_in_index_agree() -> None:
    a = used("a", "mlx5_0", gid(3, "10.0.0.1"), "10.0.0.1/24")
    b = used("b", "mlx5_0", gid(5, "10.0.0.2"), "10.0.0.2/24")
    assert list(disagreements([a, b])) == []


def test_ports_of_different_names_are_not_compared() -> None:
    a = used("a", "mlx5_0", gid(3, "10.0.0.1"))
    b = used("b", "mlx5_1", gid(3, "10.0.0.2", "v1"))
    assert list(disagreements([a, b])) == []


def test_a_tie_of_two_versions_is_said_to_be_one() -> None:
    a = used("a", "mlx5_0", gid(3, "10.0.0.1"))
    b = used("b", "mlx5_0", gid(3, "10.0.0.2", "v1"))
    (found,) = disagreements([a, b])
    assert (found.severity, found.hosts, "no majority" in found.summary) == ("error", ("a", "b"), True)


def test_two_subnets_of_two_nodes_are_a_warning_only_where_they_could_agree() -> None:
    a = used("a", "mlx5_0", gid(3, "10.0.0.1"), "10.0.0.1/24")
    b = used("b", "mlx5_0", gid(3, "10.5.0.2"), "10.5.0.2/24")
    assert list(disagreements([a, b])) == []
    also = used("b", "mlx5_0", gid(3, "10.5.0.2"), "10.5.0.2/24", "10.0.0.2/24", others=(gid(5, "10.0.0.2"),))
    (found,) = disagreements([a, also])
    assert found.severity == "warning"
    assert found.fixes[0].env == {"NCCL_IB_ADDR_RANGE": "10.0.0.0/24"}


def test_a_rail_at_odds_where_the_other_rails_share_a_subnet_is_a_warning() -> None:
    same = [
        used(host, "mlx5_0", gid(3, f"10.0.0.{at}"), f"10.0.0.{at}/24") for at, host in ((1, "a"), (2, "b"))
    ]
    odd = [
        used(host, "mlx5_1", gid(3, f"10.{at}.0.1"), f"10.{at}.0.1/24") for at, host in ((1, "a"), (2, "b"))
    ]
    (found,) = disagreements([*same, *odd])
    assert "mlx5_1:1" in found.summary
    assert "no majority" in found.summary
