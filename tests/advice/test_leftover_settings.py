"""What keeps NCCL from RDMA, or from any network, is taken away; nothing else is touched."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.leftover_settings import advise_network, common_network
from ncclcheck.advice.rule import Changes, Rule, merged, predictions
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import configured, two_networks, with_rdma
from tests.builders import everywhere, with_environment, with_facts
from tests.fact_builders import some
from tests.nccl.hardware import port, rdma, roce

PORTS = (port("mlx5_0"), port("mlx5_1"))


def advised(snapshot: Snapshot, base: Changes) -> tuple[Rule | None, tuple[str, ...]]:
    return advise_network(snapshot, base, some(predictions(snapshot, base)))


def change(snapshot: Snapshot) -> dict[str, str | None]:
    """The one change for all nodes, after which every node uses the same network."""
    rule, notes = advised(snapshot, {})
    assert rule is not None, notes
    after = some(predictions(snapshot, merged({}, rule.env_by_host)))
    assert common_network(after) is not None
    assert "our model's prediction: NCCL src/" in rule.evidence
    values = list(rule.env_by_host.values())
    assert len(values) == len(snapshot.nodes)
    assert all(value == values[0] for value in values)
    return values[0]


def why(snapshot: Snapshot) -> str:
    rule, _ = advised(snapshot, {})
    assert rule is not None
    return rule.why


def test_a_cluster_that_uses_rdma_or_has_none_needs_nothing() -> None:
    assert advised(with_rdma(2, *PORTS), {}) == (None, ())
    assert advised(with_rdma(2), {}) == (None, ())
    assert advised(with_rdma(2, NCCL_IB_DISABLE="1"), {}) == (None, ())
    assert advised(with_rdma(2, *PORTS, NCCL_NET="IB", NCCL_IB_HCA="mlx5_0"), {}) == (None, ())


@pytest.mark.parametrize("value", ["1", "0x1", "-1"])
def test_a_left_over_that_switches_rdma_off_is_taken_away(value: str) -> None:
    snapshot = with_rdma(3, *PORTS, NCCL_IB_DISABLE=value)
    assert change(snapshot) == {"NCCL_IB_DISABLE": None}
    assert f"uses Socket on node01, node02, node03: NCCL_IB_DISABLE={value} switches NET/IB off" in why(
        snapshot
    )


def test_a_value_that_does_not_switch_it_off_is_left() -> None:
    assert advised(with_rdma(2, *PORTS, NCCL_IB_DISABLE="true"), {}) == (None, ())


def test_what_one_node_has_is_taken_away_on_all() -> None:
    snapshot = with_environment(with_rdma(2, *PORTS), "node02", NCCL_IB_DISABLE="1")
    assert change(snapshot) == {"NCCL_IB_DISABLE": None}


def test_forced_sockets_are_taken_away_only_where_rdma_works() -> None:
    assert change(with_rdma(2, *PORTS, NCCL_NET="socket")) == {"NCCL_NET": None}
    assert advised(with_rdma(2, port(state="DOWN"), NCCL_NET="Socket"), {}) == (None, ())


def test_all_that_is_in_the_way_goes_and_no_more() -> None:
    snapshot = with_rdma(2, *PORTS, NCCL_NET="Socket", NCCL_IB_DISABLE="1", NCCL_IB_HCA="mlx5_1")
    assert change(snapshot) == {"NCCL_IB_DISABLE": None, "NCCL_NET": None}


def test_a_list_of_ports_that_names_none_of_them_goes() -> None:
    assert change(with_rdma(2, *PORTS, NCCL_IB_HCA="hfi1")) == {"NCCL_IB_HCA": None}


def test_a_network_that_nobody_offers_is_fatal_and_goes_with_and_without_rdma() -> None:
    assert change(with_rdma(2, NCCL_NET="AWS Libfabric")) == {"NCCL_NET": None}
    assert change(with_rdma(2, *PORTS, NCCL_NET="AWS Libfabric")) == {"NCCL_NET": None}
    assert "stops on node01, node02: NCCL stops with an error: NCCL_NET=FasTrak" in why(
        with_rdma(2, NCCL_NET="FasTrak")
    )


def test_a_plug_in_that_was_not_looked_for_may_be_the_one_that_is_named() -> None:
    snapshot = with_rdma(2, *PORTS, NCCL_NET="AWS Libfabric")
    nccl = replace(some(snapshot.nodes[0].facts.nccl), plugins=Missing("absent", "not read"))
    rule, notes = advised(everywhere(snapshot, nccl=nccl), {})
    assert rule is None
    assert "not known" in notes[0]


def test_what_a_config_file_sets_is_blocked_by_an_empty_value_or_overridden() -> None:
    snapshot = configured(with_rdma(2, *PORTS), "node02", NCCL_IB_DISABLE="1")
    assert change(snapshot) == {"NCCL_IB_DISABLE": ""}
    assert change(configured(with_rdma(2, *PORTS), "node01", NCCL_NET="Socket")) == {"NCCL_NET": "IB"}


def test_rdma_on_one_node_only_is_no_reason() -> None:
    snapshot = with_facts(with_rdma(2, *PORTS, NCCL_IB_DISABLE="1"), "node02", rdma=rdma(port(state="DOWN")))
    assert advised(snapshot, {}) == (None, ())


def test_link_layers_that_do_not_connect_are_no_reason() -> None:
    snapshot = with_facts(with_rdma(2, *PORTS, NCCL_IB_DISABLE="1"), "node02", rdma=rdma(roce()))
    assert advised(snapshot, {}) == (None, ())


def test_unread_devices_are_told_where_a_setting_is_in_doubt() -> None:
    unread = Missing("denied", "no access to /sys")
    snapshot = with_facts(with_rdma(2, *PORTS, NCCL_IB_HCA="mlx5_0"), "node02", rdma=unread)
    rule, notes = advised(snapshot, {})
    assert rule is None
    assert "its network on node02 is not known" in notes[0]
    assert advised(with_facts(with_rdma(2, *PORTS), "node02", rdma=unread), {}) == (None, ())
    assert advised(two_networks(2), {}) == (None, ())
