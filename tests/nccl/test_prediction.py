"""What NCCL uses on a node: asked where it was asked, predicted where not, and never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclChoice, NcclConfigFile, NodeFacts
from ncclcheck.nccl.prediction import (
    Prediction,
    chosen_interface,
    known_version,
    node_choice,
    predict,
    predict_interface,
)
from tests.fact_builders import answer, docker0, interface, loopback, node_facts, software, some

NO_LIBRARY = Missing("absent", "no libnccl.so.2")


def facts(**sections: Any) -> NodeFacts:
    """node01 of four: lo and eth0 10.0.0.1, its library asked."""
    return replace(node_facts(0, 4), **sections)


def unasked(**sections: Any) -> NodeFacts:
    """The same, with no NCCL library at all."""
    nccl = NcclChoice(NO_LIBRARY, sections.pop("config_files", ()), True)
    return facts(nccl=nccl, software=software(nccl=NO_LIBRARY, torch_nccl=NO_LIBRARY), **sections)


def choice_of(one: NodeFacts) -> Prediction:
    return some(node_choice(one))


def test_the_asked_answer_is_taken_and_the_model_explains_it() -> None:
    choice = choice_of(facts())
    assert (choice.source, choice.interface, choice.address, choice.version) == (
        "asked",
        "eth0",
        "10.0.0.1",
        "2.27.5",
    )
    assert choice.candidates == ("eth0",)
    assert not choice.disagreement


def test_an_answer_that_the_model_does_not_expect_is_a_disagreement_and_still_taken() -> None:
    odd = facts(
        interfaces=(loopback(), interface("eth0", "10.0.0.1/24"), docker0()),
        nccl=NcclChoice(answer("172.17.0.1", "docker0"), (), True),
    )
    assert choice_of(odd).interface == "docker0"
    assert "chose docker0 172.17.0.1, our model says eth0 10.0.0.1" in choice_of(odd).disagreement


def test_a_choice_that_could_not_be_bound_is_no_disagreement() -> None:
    failed = replace(
        answer(None, None), result_code=2, message="Bootstrap : Using eth0:10.0.0.1<0>; bind failed"
    )
    choice = choice_of(facts(nccl=NcclChoice(failed, (), True)))
    assert choice.interface is None
    assert not choice.disagreement


def test_without_a_library_the_newest_rules_predict_and_say_so() -> None:
    choice = choice_of(unasked())
    assert (choice.source, choice.version, choice.library) == ("predicted", None, None)
    assert chosen_interface(unasked()) == ("eth0", "10.0.0.1")
    assert "no NCCL is known on this node" in choice.reason


def test_the_version_torch_was_built_with_is_used_where_the_library_was_not_asked() -> None:
    built = facts(
        nccl=NcclChoice(NO_LIBRARY, (), True), software=software(nccl=NO_LIBRARY, torch_nccl="2.20.5")
    )
    assert known_version(built) == "2.20.5"
    assert choice_of(built).version == "2.20.5"


def test_a_failure_is_a_missing_interface_with_nccls_own_words() -> None:
    failing = facts(nccl=NcclChoice(answer(None, None), (), True))
    found = chosen_interface(failing)
    assert isinstance(found, Missing)
    assert "no socket interface found" in found.detail


@pytest.mark.parametrize("section", ["nccl", "environment", "interfaces"])
def test_a_missing_section_is_never_guessed_around(section: str) -> None:
    found = chosen_interface(facts(**{section: Missing("timeout", "no answer in 10 s")}))
    assert isinstance(found, Missing)
    assert found.missing == "timeout"
    assert section in found.detail


def test_a_config_file_decides_where_the_environment_is_silent() -> None:
    config = NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "^docker0"})
    assert chosen_interface(unasked(config_files=(config,))) == ("lo", "127.0.0.1")


def test_an_unreadable_config_file_leaves_the_choice_unknown() -> None:
    config = NcclConfigFile("/etc/nccl.conf", Missing("timeout", "dead mount"))
    assert isinstance(node_choice(unasked(config_files=(config,))), Missing)


def test_an_environment_plugin_leaves_the_choice_unknown() -> None:
    assert isinstance(node_choice(unasked(environment={"NCCL_ENV_PLUGIN": "site"})), Missing)
    assert chosen_interface(unasked(environment={"NCCL_ENV_PLUGIN": "none"})) == ("eth0", "10.0.0.1")


def test_changes_are_predicted_without_touching_the_facts() -> None:
    one = facts(environment={"NCCL_SOCKET_IFNAME": "^docker0"})
    assert some(predict(one)).interface == "lo"
    assert some(predict(one, changes={"NCCL_SOCKET_IFNAME": None})).interface == "eth0"
    assert some(predict(one, changes={"NCCL_SOCKET_IFNAME": "=lo"})).interface == "lo"


def test_another_version_can_be_asked_for_and_a_wrong_one_is_refused() -> None:
    down = facts(interfaces=(loopback(), interface("eth0", "10.0.0.1/24", running=False)))
    assert some(predict(down, "2.27.7")).interface == "eth0"
    assert some(predict(down, "2.28.9")).interface == "lo"
    with pytest.raises(UsageError):
        predict(down, "newest")


def test_comm_id_gives_the_local_address_and_not_the_one_in_the_id() -> None:
    one = facts(
        environment={"NCCL_COMM_ID": "10.0.0.77:5000"}, nccl=NcclChoice(answer("10.0.0.77", "eth0"), (), True)
    )
    assert chosen_interface(one) == ("eth0", "10.0.0.1")
    assert not choice_of(one).disagreement


def test_the_interface_alone_is_the_same_as_in_the_whole_prediction() -> None:
    facts = node_facts(0, 2)
    assert predict_interface(facts) == ("eth0", "10.0.0.1")
    assert predict_interface(facts, {"NCCL_SOCKET_IFNAME": "lo"}) == ("lo", "127.0.0.1")
    nothing = predict_interface(facts, {"NCCL_SOCKET_IFNAME": "nosuch"})
    assert isinstance(nothing, Missing)
    assert nothing.missing == "absent"
    unread = Missing("timeout", "no answer")
    missing = predict_interface(replace(facts, interfaces=unread))
    assert isinstance(missing, Missing)
    assert missing.missing == "timeout"


def test_a_reason_names_the_file_that_a_setting_is_from() -> None:
    system = NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "=lo", "NCCL_IB_DISABLE": "1"})
    of_file = some(predict(unasked(config_files=(system,)), "2.28.9"))
    assert of_file.reason == (
        "NCCL_SOCKET_IFNAME==lo takes exactly lo; NCCL_SOCKET_IFNAME is set in /etc/nccl.conf"
    )
    assert "; NCCL_IB_DISABLE is set in /etc/nccl.conf" in of_file.network_reason
    own = some(
        predict(
            unasked(config_files=(system,), environment={"NCCL_SOCKET_IFNAME": "eth0"}),
            "2.28.9",
            {"NCCL_IB_DISABLE": "1"},
        )
    )
    assert "is set in" not in own.reason + own.network_reason
