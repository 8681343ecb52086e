"""NC603 env-bad-value."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile
from tests.checks.environment.clusters import running, with_further_rank
from tests.checks.running import finding, is_silent, run

SLUG = "env-bad-value"


@pytest.mark.parametrize("name", ["NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"])
def test_true_does_nothing(name: str) -> None:
    found = finding(SLUG, running({name: "true"}))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert found.summary.startswith(f"NCCL 2.27.5 misreads {name}=true on node01 and node02")
    assert "the opposite of what it says" in found.summary
    assert found.fixes[0].env == {name: "1"}
    assert found.evidence[0].expected == f"{name}=1"


@pytest.mark.parametrize(
    "environment",
    [{"NCCL_IB_DISABLE": "1"}, {"NCCL_ALGO": "Ring"}, {"NCCL_DEBUG": "info"}, {"NCCL_IB_HCA": "=mlx5_0"}],
)
def test_values_that_say_what_they_do_are_silent(environment: dict[str, str]) -> None:
    assert is_silent(SLUG, running(environment))


def test_the_version_of_the_node_decides() -> None:
    assert finding(SLUG, running({"NCCL_ALGO": "rings"}, "2.23.4")).severity == "warning"
    assert finding(SLUG, running({"NCCL_ALGO": "rings"}, "2.24.3")).severity == "error"
    assert finding(SLUG, running({"NCCL_NVLS_ENABLE": "true"}, "2.31.2")).severity == "error"
    assert finding(SLUG, running({"NCCL_NVLS_ENABLE": "true"}, "2.32.3")).severity == "info"


def test_without_a_version_only_what_all_do_is_told() -> None:
    assert finding(SLUG, running({"NCCL_IB_DISABLE": "true"}, None)).severity == "error"
    assert finding(SLUG, running({"NCCL_ALGO": "rings"}, None)).severity == "warning"
    unsure = run(SLUG, running({"NCCL_DEBUG": "INFO "}, None))
    assert unsure.outcome == "unknown"
    assert "depends on its version" in unsure.reason


def test_a_name_that_this_version_does_not_read_is_not_judged() -> None:
    assert is_silent(SLUG, running({"NCCL_IB_ADDR_RANGE": "everything"}, "2.20.5"))


def test_windows_line_ends_in_a_file_count_before_2_30() -> None:
    file = NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "eth0\r"})
    found = finding(SLUG, running({}, "2.28.9", file))
    assert (found.severity, found.fixes[0].env) == ("error", {"NCCL_SOCKET_IFNAME": "eth0"})
    assert "set in /etc/nccl.conf" in found.summary
    assert is_silent(SLUG, running({}, "2.30.3", file))


def test_torch_raises_at_what_it_does_not_take() -> None:
    found = finding(SLUG, running({"TORCH_NCCL_BLOCKING_WAIT": "on"}))
    assert found.severity == "error"
    assert found.summary.startswith("torch 2.9.0 misreads TORCH_NCCL_BLOCKING_WAIT=on")


def test_a_redacted_value_is_not_judged() -> None:
    assert is_silent(SLUG, running({"NCCL_IB_DISABLE": "(redacted)"}))


def test_a_range_is_read_with_its_family() -> None:
    both = {"NCCL_IB_ADDR_RANGE": "fd00::/64", "NCCL_IB_ADDR_FAMILY": "AF_INET6"}
    assert is_silent(SLUG, running(both))
    assert finding(SLUG, running({"NCCL_IB_ADDR_RANGE": "fd00::/64"})).severity == "warning"


def test_a_further_rank_is_named() -> None:
    found = finding(SLUG, with_further_rank(running({}), 3, NCCL_IB_DISABLE="yes"))
    assert "on node02, rank 3" in found.summary


def test_a_config_file_that_is_not_there_is_told() -> None:
    gone = NcclConfigFile("/opt/nccl.conf", Missing("absent", "/opt/nccl.conf"))
    found = finding(SLUG, running({"NCCL_CONF_FILE": "/opt/nccl.conf"}, "2.27.5", gone))
    assert "cannot be read" in found.summary
    assert is_silent(
        SLUG, running({"NCCL_CONF_FILE": "/opt/nccl.conf"}, "2.27.5", NcclConfigFile("/opt/nccl.conf", {}))
    )
