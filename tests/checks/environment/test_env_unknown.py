"""NC602 env-unknown."""

from __future__ import annotations

import pytest

from ncclcheck.model.codec import encode
from ncclcheck.model.facts import NcclConfigFile
from tests.builders import cluster, with_environment
from tests.checks.environment.clusters import running, with_further_rank
from tests.checks.running import finding, is_silent, run

SLUG = "env-unknown"


def test_known_names_are_silent() -> None:
    names = (
        "NCCL_SOCKET_IFNAME",
        "NCCL_FASTRAK_NUM_FLOWS",
        "TORCH_NCCL_BLOCKING_WAIT",
        "GLOO_SOCKET_IFNAME",
        "NCCL_VERSION",
    )
    assert is_silent(SLUG, running(dict.fromkeys(names, "eth0")))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NCCL_TIMEOUT", "init_process_group(timeout=...)"),
        ("NCCL_SOCKET_IFNAM", "did you mean NCCL_SOCKET_IFNAME?"),
        ("NCCL_IB_DEVICE", "NCCL_IB_HCA"),
        ("GLOO_IFNAME", "GLOO_SOCKET_IFNAME"),
        ("TORCH_NCCL_HEARTBEAT_TIMEOUT", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"),
        ("TORCHELASTIC_MAX_RESTART", "TORCHELASTIC_MAX_RESTARTS"),
        ("NCCL_BLAH_BLUB_NOTHING", "no known name is similar"),
    ],
)
def test_a_name_that_nobody_reads_is_a_warning_with_what_to_use(name: str, words: str) -> None:
    found = finding(SLUG, running({name: "600"}))
    assert (found.severity, found.hosts) == ("warning", ("node01", "node02"))
    assert found.summary.startswith(f"no program reads {name}=600 on node01 and node02")
    assert words in found.summary


def test_a_slip_is_mended_by_its_fix() -> None:
    fix = finding(SLUG, running({"NCCL_IB_HAC": "mlx5"})).fixes[0]
    assert (fix.commands, fix.env) == (("unset NCCL_IB_HAC",), {"NCCL_IB_HCA": "mlx5"})


def test_a_secret_is_not_copied_into_a_fix() -> None:
    fix = finding(SLUG, running({"NCCL_DEUBG": "(redacted)"})).fixes[0]
    assert fix.env == {}


def test_a_name_of_another_version_is_not_unknown() -> None:
    assert is_silent(SLUG, running({"NCCL_PROGRESS_COUNTERS": "1", "NCCL_TREE_THRESHOLD": "0"}, "2.21.5"))


def test_a_blank_in_front_of_the_equals_sign_of_a_file_makes_another_name() -> None:
    file = NcclConfigFile("/etc/nccl.conf", {"NCCL_DEBUG ": "INFO"})
    found = finding(SLUG, running({}, "2.27.5", file))
    assert "the blank is part of the name; NCCL_DEBUG is meant" in found.summary
    assert "set in /etc/nccl.conf" in found.summary


@pytest.mark.parametrize(
    ("environment", "nccl", "torch"),
    [
        ({}, "2.40.1", "2.9.0"),
        ({}, "2.27.5", "2.9.0+rocm6.4"),
        ({"NCCL_CTRAN_ENABLE": "1"}, "2.27.5", "2.9.0"),
        ({}, "2.27.5", "2.99.0"),
    ],
)
def test_a_fork_or_a_newer_nccl_may_have_names_of_its_own(
    environment: dict[str, str], nccl: str, torch: str
) -> None:
    result = run(SLUG, running({**environment, "NCCL_BRAND_NEW_SETTING": "1"}, nccl, torch=torch))
    assert result.outcome == "unknown"
    assert "NCCL_BRAND_NEW_SETTING" in result.reason
    assert run(SLUG, running({**environment, "NCCL_TIMEOUT": "1"}, nccl, torch=torch)).outcome == "found"


def test_a_further_rank_is_judged_too() -> None:
    found = finding(SLUG, with_further_rank(running({}), 3, NCCL_TIMEOUT="5"))
    assert (found.hosts, "rank 3" in found.summary) == (("node02",), True)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nccl_debug", "NCCL_DEBUG"),
        ("Nccl_Socket_Ifname", "NCCL_SOCKET_IFNAME"),
        ("NCCL_socket_ifname", "NCCL_SOCKET_IFNAME"),
        ("gloo_socket_ifname", "GLOO_SOCKET_IFNAME"),
        ("tp_socket_ifname", "TP_SOCKET_IFNAME"),
        ("NCLL_DEBUG", "NCCL_DEBUG"),
        ("NCC_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL-DEBUG", "NCCL_DEBUG"),
        ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
    ],
)
def test_a_name_in_another_spelling_is_renamed_by_its_fix(name: str, meant: str) -> None:
    healthy = running({})
    for node in healthy.nodes:
        healthy = with_environment(healthy, node.host, NCCL_DEBUG=None, **{name: "eth0"})
    found = finding(SLUG, healthy)
    assert found.severity == "warning"
    assert found.fixes[0].env == {meant: "eth0"}


def test_small_letters_beside_the_real_name_are_a_variable_of_a_script() -> None:
    assert is_silent(SLUG, running({"nccl_debug": "INFO", "NCCL_DEBUG": "INFO"}))
    assert is_silent(SLUG, running({"nccl_gib_version": "1.1.0", "nccl_home": "/opt"}))


def test_a_fix_does_not_replace_a_value_that_is_set() -> None:
    fix = finding(SLUG, running({"NCCL_SOCKET_IFNAM": "eth0", "NCCL_SOCKET_IFNAME": "eth1"})).fixes[0]
    assert (fix.commands, fix.env) == (("unset NCCL_SOCKET_IFNAM",), {})


@pytest.mark.parametrize(
    "name", ["export NCCL_DEBUG_FILE", " NCCL_DEBUG_FILE", "nccl_debug_file", "NCCL_DEBUG_FILE "]
)
def test_a_line_of_a_file_that_sets_another_name_is_told(name: str) -> None:
    file = NcclConfigFile("/etc/nccl.conf", {name: "/tmp/nccl.%h.%p"})
    found = finding(SLUG, running({}, "2.27.5", file))
    assert "NCCL_DEBUG_FILE" in found.fixes[0].env
    assert "set in /etc/nccl.conf" in found.fixes[0].text


def test_a_name_that_no_shell_can_hold_is_shown_and_not_unset() -> None:
    found = finding(SLUG, running({"NCCL-IB-HCA": " mlx5_0\r"}))
    assert found.summary.startswith("no program reads 'NCCL-IB-HCA'=")
    assert (found.fixes[0].commands, found.fixes[0].env) == ((), {"NCCL_IB_HCA": "mlx5_0"})


def test_thousands_of_variables_of_one_node_are_few_findings() -> None:
    variables = {f"NCCL_VARIABLE_{number}": str(number) for number in range(3_000)}
    snapshot = with_environment(cluster(), "node03", **variables)
    for slug in ("env-unknown", "env-differs"):
        found = run(slug, snapshot).findings
        assert 1 <= len(found) <= 70, slug
        assert {host for finding in found for host in finding.hosts} & {"node03"}
        assert sum(len(encode(finding)) for finding in found) < 200_000
    assert any("2936 more variables" in finding.summary for finding in run("env-unknown", snapshot).findings)
