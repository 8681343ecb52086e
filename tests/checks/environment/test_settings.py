"""The environments that the checks of this family judge, and how their findings are told."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    OneAnswer,
    SettingFault,
    findings,
    places,
    shown,
    unset,
)
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile
from ncclcheck.model.finding import Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot
from tests.builders import with_environment, without
from tests.checks.environment.clusters import place_of, running, with_further_rank

FILE = NcclConfigFile("/etc/nccl.conf", {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO"})


def found(snapshot: Snapshot, name: str = "NCCL_ALGO") -> list[Finding]:
    def judge(place: EnvironmentPlace) -> Iterator[Judged]:
        if (value := place.value(name)) is not None:
            yield SettingFault(
                "warning", (name,), shown(name, value), "because", "not set", "a source", unset(name)
            )

    return [finding for finding in findings(snapshot, judge) if isinstance(finding, Finding)]


def test_environment_overrides_nccl_conf() -> None:
    place = next(places(running({}, "2.27.5", FILE)))
    assert (place.value("NCCL_ALGO"), place.sources["NCCL_ALGO"]) == ("Ring", "/etc/nccl.conf")
    assert (place.value("NCCL_DEBUG"), place.sources["NCCL_DEBUG"]) == ("WARN", "environment")


def test_a_further_rank_is_a_place_of_its_own() -> None:
    all_places = list(
        places(with_further_rank(running({"NCCL_ALGO": "Tree"}), 3, NCCL_ALGO=None, NCCL_PROTO="LL"))
    )
    assert [(place.host, place.rank) for place in all_places] == [
        ("node01", None),
        ("node02", None),
        ("node02", 3),
    ]
    assert all_places[2].value("NCCL_ALGO") is None
    assert all_places[2].value("NCCL_PROTO") == "LL"


def test_a_further_rank_that_lost_a_variable_has_that_of_the_file() -> None:
    snapshot = with_further_rank(running({"NCCL_ALGO": "Tree"}, "2.27.5", FILE), 3, NCCL_ALGO=None)
    assert list(places(snapshot))[2].value("NCCL_ALGO") == "Ring"


def test_equal_faults_are_one_finding_that_names_the_hosts() -> None:
    (one,) = found(running({"NCCL_ALGO": "Ring"}, nodes=4))
    assert one.hosts == ("node01", "node02", "node03", "node04")
    assert one.summary == "NCCL_ALGO=Ring on node[01-04]: because"
    assert one.fixes[0].commands == ("unset NCCL_ALGO",)


def test_a_fault_of_one_rank_names_host_and_rank() -> None:
    (one,) = found(with_further_rank(running({}), 3, NCCL_ALGO="Ring"))
    assert one.summary == "NCCL_ALGO=Ring on node02, rank 3: because"
    assert one.evidence[0].subject == "NCCL_ALGO of rank 3"


def test_what_a_rank_shares_with_its_node_is_not_told_twice() -> None:
    (one,) = found(with_further_rank(running({"NCCL_ALGO": "Ring"}), 3, NCCL_PROTO="LL"))
    assert len(one.evidence) == 2


def test_a_value_from_a_file_is_told_with_the_file() -> None:
    (one,) = found(running({}, "2.27.5", FILE))
    assert "set in /etc/nccl.conf" in one.summary
    assert one.fixes[0].commands == ()
    assert "/etc/nccl.conf" in one.fixes[0].text


def test_a_hidden_value_is_not_judged() -> None:
    assert found(running({"NCCL_ALGO": "(redacted)"})) == []


def test_different_values_are_different_findings() -> None:
    assert len(found(with_environment(running({"NCCL_ALGO": "Ring"}), "node02", NCCL_ALGO="Tree"))) == 2


def test_what_a_judge_cannot_tell_is_not_known() -> None:
    answers = list(findings(running({}), lambda place: [OneAnswer(f"nobody knows {place.host}")]))
    assert answers == [
        NotKnown("nobody knows node01", ("node01",)),
        NotKnown("nobody knows node02", ("node02",)),
    ]


def test_without_the_config_files_the_process_environment_is_judged() -> None:
    snapshot = without(running({"NCCL_ALGO": "Ring"}), "node02", "nccl")
    assert found(snapshot)[0].hosts == ("node01", "node02")


def test_a_file_that_could_not_be_read_is_not_known() -> None:
    broken = NcclConfigFile("/etc/nccl.conf", Missing("timeout", "no answer"))
    answers = list(findings(running({}, "2.27.5", broken), lambda _: []))
    assert all(isinstance(answer, NotKnown) and "/etc/nccl.conf" in answer.reason for answer in answers)
    assert len(answers) == 2


def test_numbers_are_read_as_that_version_reads_them() -> None:
    assert place_of({"NCCL_IB_TC": "auto"}, "2.31.2").number("NCCL_IB_TC", 7) == 0
    assert place_of({"NCCL_IB_TC": "auto"}, "2.32.3").number("NCCL_IB_TC", 7) == 7


def test_a_version_that_is_not_known_stands_for_all() -> None:
    assert place_of({}, "2.21.5").versions() == ("2.21.5",)
    assert len(place_of({}, None).versions()) > 5


def test_odd_values_are_shown_with_quotes_and_long_ones_cut() -> None:
    assert shown("A", "eth0, eth1\r") == "A='eth0, eth1\\r'"
    assert shown("A", "=eth0") == "A==eth0"
    assert shown("A", "") == "A=''"
    assert len(shown("A", "x" * 500)) < 100


def test_what_has_to_be_written_differently_per_node_is_a_finding_each() -> None:
    def judge(place: EnvironmentPlace) -> Iterator[Judged]:
        fix = Fix("write it", (), {"NCCL_ALGO": place.host})
        yield SettingFault("warning", ("NCCL_ALGO",), "it", "because", "not set", "a source", fix)

    told = [finding for finding in findings(running({}), judge) if isinstance(finding, Finding)]
    assert [(one.hosts, one.fixes[0].env["NCCL_ALGO"]) for one in told] == [
        (("node01",), "node01"),
        (("node02",), "node02"),
    ]


def test_the_evidence_has_the_value_of_one_and_the_settings_of_several_variables() -> None:
    (one,) = found(running({"NCCL_ALGO": "Ring"}))
    assert (one.evidence[0].subject, one.evidence[0].observed) == ("NCCL_ALGO", "Ring")

    def judge(_: EnvironmentPlace) -> Iterator[Judged]:
        names = ("NCCL_ALGO", "NCCL_PROTO")
        yield SettingFault("warning", names, "both", "because", "not set", "a source", unset(*names))

    both = [
        finding for finding in findings(running({"NCCL_ALGO": "Ring"}), judge) if isinstance(finding, Finding)
    ]
    assert both[0].evidence[0].observed == "NCCL_ALGO=Ring, NCCL_PROTO is not set"
