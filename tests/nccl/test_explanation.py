"""The whole choice of a node: of a live one, and of a recorded one that tells only a part."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclChoice, NcclConfigFile, NodeFacts
from ncclcheck.nccl.explanation import explain, network_choice
from ncclcheck.nccl.prediction import Prediction, predict
from tests.fact_builders import answer, interface, loopback, node_facts, some
from tests.nccl.hardware import UNREAD, port, rdma, roce

V = "2.28.9"


def live(**sections: Any) -> NodeFacts:
    """node01 with an InfiniBand and a RoCE port."""
    return replace(node_facts(0, 4), **{"rdma": rdma(port("mlx5_0"), roce("mlx5_1")), **sections})


def recorded(**sections: Any) -> NodeFacts:
    """What a recorded tree tells: hardware, and interfaces without addresses."""
    without = (interface("lo", kind="loopback"), interface("eth0"))
    return replace(NodeFacts(interfaces=without, rdma=rdma(port("mlx5_0"))), **sections)


def told(facts: NodeFacts, version: str | None = V) -> Prediction:
    return some(explain(facts, version))


def test_a_live_node_has_everything() -> None:
    choice = told(live(), None)
    assert (choice.source, choice.interface, choice.network, choice.fails) == ("asked", "eth0", "IB", False)
    assert [hca.gid_index for hca in choice.hcas] == [0, 3]
    assert "NCCL_IB_DISABLE=1 would use Socket" in choice.changes
    assert "assuming" not in choice.reason


def test_what_the_model_predicts_for_a_version_is_the_same_without_the_changes() -> None:
    assert replace(told(live()), changes=()) == predict(live(), V)


def test_a_failed_answer_fails_and_still_has_a_network() -> None:
    failed = live(nccl=NcclChoice(answer(None, None), (), True))
    choice = told(failed, None)
    assert (choice.interface, choice.fails, choice.network) == (None, True, "IB")


def test_a_network_that_fails_does_not_hide_the_interface() -> None:
    choice = told(live(environment={"NCCL_NET": "OFI"}), None)
    assert (choice.interface, choice.network, choice.fails) == ("eth0", None, True)
    assert "NCCL_NET=OFI" in choice.network_reason


def test_without_addresses_the_interface_is_not_known_and_nothing_fails() -> None:
    choice = told(recorded())
    assert (choice.interface, choice.address, choice.fails) == (None, None, False)
    assert "the facts hold no addresses" in choice.reason
    assert "assuming that there is no nccl.conf and no variable is set (not told)" in choice.reason
    assert (choice.network, [hca.device for hca in choice.hcas]) == ("IB", ["mlx5_0"])


def test_without_an_interface_section_too() -> None:
    choice = told(recorded(interfaces=UNREAD))
    assert (choice.interface, choice.network) == (None, "IB")
    assert "the interface is not known: interfaces of the node" in choice.reason


def test_the_config_files_of_a_recorded_machine_count() -> None:
    files = (NcclConfigFile("/etc/nccl.conf", {"NCCL_IB_DISABLE": "1"}),)
    choice = told(recorded(nccl=NcclChoice(UNREAD, files, True)))
    assert choice.network != "IB"


def test_addresses_that_are_there_are_used() -> None:
    with_address = recorded(interfaces=(loopback(), interface("eth0", "10.0.0.1/24")))
    assert (told(with_address).interface, told(with_address).address) == ("eth0", "10.0.0.1")


def test_a_live_node_without_any_address_fails() -> None:
    nothing = live(interfaces=(interface("eth0"),), nccl=NcclChoice(UNREAD, (), True))
    choice = told(nothing)
    assert (choice.interface, choice.network, choice.fails) == (None, None, True)


def test_a_section_that_a_live_node_could_not_read_is_not_assumed() -> None:
    late = Missing("timeout", "no answer in 10 s")
    assert isinstance(explain(live(nccl=late)), Missing)
    assert isinstance(explain(live(environment=late), V), Missing)
    asked = told(live(environment=late), None)
    assert (asked.interface, asked.network) == ("eth0", None)
    assert "environment of the node: no answer in 10 s" in asked.network_reason


def test_nothing_known_at_all_is_missing() -> None:
    assert isinstance(explain(NodeFacts()), Missing)
    assert isinstance(explain(recorded(rdma=UNREAD)), Missing)


def test_an_unresolved_comm_id_leaves_only_the_interface_open() -> None:
    choice = told(live(environment={"NCCL_COMM_ID": "elsewhere:5000"}))
    assert (choice.interface, choice.fails, choice.network) == (None, False, "IB")
    assert "'elsewhere'" in choice.reason


def test_an_environment_plugin_leaves_everything_open() -> None:
    assert isinstance(explain(live(environment={"NCCL_ENV_PLUGIN": "x"}), V), Missing)


def test_changes_to_the_environment_reach_network_and_hcas() -> None:
    assert some(predict(live(), V, {"NCCL_IB_DISABLE": "1"})).network == "Socket"
    assert [hca.device for hca in some(predict(live(), V, {"NCCL_IB_HCA": "=mlx5_1"})).hcas] == ["mlx5_1"]
    off = live(environment={"NCCL_IB_DISABLE": "1"})
    assert some(predict(off, V, {"NCCL_IB_DISABLE": None})).network == "IB"


def test_the_choice_alone_is_the_same_without_what_would_change_it() -> None:
    for facts in (live(), recorded(rdma=rdma(port("mlx5_0")))):
        whole, alone = some(explain(facts)), some(network_choice(facts))
        assert (alone.network, alone.hcas, alone.fails) == (whole.network, whole.hcas, whole.fails)
        assert (bool(whole.changes), alone.changes) == (True, ())
    assert isinstance(network_choice(NodeFacts()), Missing)
