"""NC605 env-contradiction."""

from __future__ import annotations

import pytest

from ncclcheck.model.facts import NcclConfigFile
from tests.builders import with_interfaces
from tests.checks.environment.clusters import running, with_further_rank, with_gpus
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface

SLUG = "env-contradiction"


@pytest.mark.parametrize(
    ("environment", "severity", "words"),
    [
        (
            {"NCCL_COMM_ID": "10.0.0.1:5000", "NCCL_SOCKET_IFNAME": "eth0"},
            "warning",
            "ignores NCCL_SOCKET_IFNAME",
        ),
        ({"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "mlx5_0"}, "warning", "RDMA is turned off"),
        ({"NCCL_NET": "Socket", "NCCL_IB_HCA": "mlx5_0"}, "warning", "have no effect"),
        ({"NCCL_NET": "IB", "NCCL_IB_DISABLE": "1"}, "error", "fails"),
        ({"NCCL_NET": "AWS Libfabric", "NCCL_NET_PLUGIN": "none"}, "error", "no plug-in is loaded"),
        ({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, "warning", "slowest transport"),
        ({"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "8"}, "warning", "at most 64"),
        ({"NCCL_MIN_CTAS": "32", "NCCL_MAX_CTAS": "16"}, "warning", "the minimum is larger than the maximum"),
        (
            {"NCCL_MIN_NCHANNELS": "32", "NCCL_MAX_NCHANNELS": "4"},
            "warning",
            "the minimum is larger than the maximum",
        ),
        (
            {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_ADDR_RANGE": "10.0.0.0/8"},
            "warning",
            "the range has no effect",
        ),
        ({"NCCL_SOCKET_FAMILY": "AF_INET6", "NCCL_SOCKET_IFNAME": "eth0"}, "error", "only IPv4 addresses"),
        ({"NCCL_SOCKET_IFNAME": "ib0", "GLOO_SOCKET_IFNAME": "eth0"}, "info", "different interfaces"),
        ({"TORCH_NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}, "warning", "overrides"),
        ({"NCCL_BLOCKING_WAIT": "1", "NCCL_ASYNC_ERROR_HANDLING": "1"}, "warning", "overrides"),
        (
            {"NCCL_DESYNC_DEBUG": "1", "TORCH_NCCL_DESYNC_DEBUG": "0"},
            "warning",
            "TORCH_NCCL_DESYNC_DEBUG wins",
        ),
    ],
)
def test_settings_that_contradict_each_other(environment: dict[str, str], severity: str, words: str) -> None:
    found = finding(SLUG, running(environment))
    assert (found.severity, found.hosts) == (severity, ("node01", "node02"))
    assert words in found.summary
    assert all(name in found.summary for name in environment)


@pytest.mark.parametrize(
    "environment",
    [
        {"NCCL_COMM_ID": "10.0.0.1:5000"},
        {"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "mlx5_0"},
        {"NCCL_IB_DISABLE": "true", "NCCL_IB_HCA": "mlx5_0"},
        {"NCCL_NET": "IB", "NCCL_IB_HCA": "mlx5_0"},
        {"NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none"},
        {"NCCL_NET": "AWS Libfabric", "NCCL_NET_PLUGIN": "ofi"},
        {"NCCL_P2P_DISABLE": "2", "NCCL_SHM_DISABLE": "1"},
        {"NCCL_SOCKET_NTHREADS": "8", "NCCL_NSOCKS_PERTHREAD": "8"},
        {"NCCL_MIN_CTAS": "16", "NCCL_MAX_CTAS": "16"},
        {"NCCL_MIN_CTAS": "16"},
        {"NCCL_IB_GID_INDEX": "-1", "NCCL_IB_ADDR_RANGE": "10.0.0.0/8"},
        {"NCCL_SOCKET_FAMILY": "AF_INET", "NCCL_SOCKET_IFNAME": "eth0"},
        {"NCCL_SOCKET_IFNAME": "eth", "GLOO_SOCKET_IFNAME": "eth0"},
        {"NCCL_SOCKET_IFNAME": "^docker,lo", "GLOO_SOCKET_IFNAME": "eth0"},
        {"TORCH_NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"},
        {"NCCL_DESYNC_DEBUG": "1", "TORCH_NCCL_DESYNC_DEBUG": "1"},
    ],
)
def test_settings_that_go_together_are_silent(environment: dict[str, str]) -> None:
    assert is_silent(SLUG, running(environment))


@pytest.mark.parametrize("version", ["2.29.2", "2.29.7"])
def test_nccl_2_29_errs_with_a_comm_id(version: str) -> None:
    found = finding(SLUG, running({"NCCL_COMM_ID": "10.0.0.1:5000"}, version))
    assert found.severity == "error"
    assert "fixed in 2.30.3" in found.summary
    assert is_silent(SLUG, running({"NCCL_COMM_ID": "10.0.0.1:5000"}, "2.30.3"))


def test_a_comm_id_without_a_version_is_not_known() -> None:
    assert run(SLUG, running({"NCCL_COMM_ID": "10.0.0.1:5000"}, None)).outcome == "unknown"


def test_one_gpu_needs_neither_peer_to_peer_nor_shared_memory() -> None:
    assert is_silent(SLUG, with_gpus(running({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}), 1))


def test_the_family_is_held_against_the_interfaces_of_each_node() -> None:
    snapshot = running({"NCCL_SOCKET_FAMILY": "AF_INET6", "NCCL_SOCKET_IFNAME": "eth0"})
    six = with_interfaces(snapshot, "node01", interface("eth0", "10.0.0.1/24", "fd00::1/64"))
    assert finding(SLUG, six).hosts == ("node02",)


def test_a_file_that_says_otherwise_is_told_with_the_winner() -> None:
    file = NcclConfigFile("/etc/nccl.conf", {"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring"})
    found = finding(SLUG, running({}, "2.27.5", file))
    assert found.severity == "info"
    assert "NCCL_DEBUG=WARN in the environment and NCCL_DEBUG=INFO in /etc/nccl.conf" in found.summary
    assert "the environment wins" in found.summary


def test_two_files_that_differ_are_told() -> None:
    files = (
        NcclConfigFile("/root/.nccl.conf", {"NCCL_ALGO": "Tree"}),
        NcclConfigFile("/etc/nccl.conf", {"NCCL_ALGO": "Ring"}),
    )
    assert "/root/.nccl.conf wins" in finding(SLUG, running({}, "2.27.5", *files)).summary


def test_a_rank_that_differs_is_judged_with_all_it_has() -> None:
    snapshot = with_further_rank(running({"NCCL_NET": "IB"}), 3, NCCL_IB_DISABLE="1")
    found = finding(SLUG, snapshot)
    assert "on node02, rank 3" in found.summary
