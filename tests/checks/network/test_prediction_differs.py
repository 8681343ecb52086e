"""NC215 prediction-differs."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.facts import NcclChoice
from ncclcheck.model.snapshot import Confirmation, Snapshot
from tests.builders import cluster, everywhere, with_choice, with_interfaces, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, answer, interface


def test_a_model_that_agrees_is_silent() -> None:
    assert is_silent("prediction-differs", cluster(4))


def test_another_answer_of_the_library_is_a_warning() -> None:
    two = with_interfaces(
        cluster(4), "node03", interface("eth0", "10.0.0.3/24"), interface("eth1", "10.1.0.3/24", index=3)
    )
    found = finding("prediction-differs", with_choice(two, "node03", "eth1", "10.1.0.3"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "bug of ncclcheck" in found.summary


def test_without_an_answer_there_is_nothing_to_compare() -> None:
    silent = everywhere(cluster(4), nccl=NcclChoice(GONE, (), True))
    assert run("prediction-differs", silent).outcome == "not_applicable"


def test_without_interfaces_nothing_is_known() -> None:
    assert run("prediction-differs", without(cluster(4), "node03", "interfaces")).outcome == "unknown"


def confirmed(name: str, address: str) -> Snapshot:
    """The library of node03, asked again with NCCL_SOCKET_IFNAME==eth1, chose that."""
    two = with_interfaces(
        cluster(4), "node03", interface("eth0", "10.0.0.3/24"), interface("eth1", "10.1.0.3/24", index=3)
    )
    again = Confirmation("node03", {"NCCL_SOCKET_IFNAME": "=eth1"}, answer(address, name))
    return replace(two, confirmations=(again,))


def test_a_confirmation_that_agrees_is_silent() -> None:
    assert is_silent("prediction-differs", confirmed("eth1", "10.1.0.3"))


def test_another_answer_under_a_proposed_setting_is_told_with_both() -> None:
    found = finding("prediction-differs", confirmed("eth0", "10.0.0.3"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    for text in ("NCCL_SOCKET_IFNAME==eth1", "eth0 10.0.0.3", "eth1 10.1.0.3", "bug of ncclcheck"):
        assert text in found.summary


def test_a_confirmation_without_answer_compares_nothing() -> None:
    unanswered = Confirmation("node03", {"NCCL_SOCKET_IFNAME": "=eth1"}, GONE)
    assert is_silent("prediction-differs", replace(cluster(4), confirmations=(unanswered,)))
