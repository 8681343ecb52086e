"""NCCL_IB_HCA and TP_SOCKET_IFNAME against the devices of the node."""

from __future__ import annotations

import pytest

from tests.builders import with_interfaces
from tests.checks.environment.clusters import running, with_rdma
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface

SLUG = "env-bad-value"
DEVICES = ("mlx5_0", "mlx5_1", "mlx5_10", "mlx5_11", "mlx5_2")


def test_a_name_that_another_begins_with_takes_that_one_too() -> None:
    found = finding(SLUG, with_rdma(running({"NCCL_IB_HCA": "mlx5_0,mlx5_1"}), *DEVICES))
    assert (found.severity, found.hosts) == ("warning", ("node01", "node02"))
    assert "also matches mlx5_10, mlx5_11" in found.summary
    assert found.fixes[0].env == {"NCCL_IB_HCA": "=mlx5_0,mlx5_1"}


@pytest.mark.parametrize(
    "value",
    [
        "=mlx5_1",
        "mlx5",
        "mlx5_1,mlx5_10,mlx5_11",
        "mlx5_0:1,mlx5_2:1",
        "^mlx5_1",
        "mlx5_2",
        "mlx5_",
        "",
    ],
)
def test_a_list_that_takes_what_it_names_is_fine(value: str) -> None:
    assert is_silent(SLUG, with_rdma(running({"NCCL_IB_HCA": value}), *DEVICES))


@pytest.mark.parametrize("value", ["mlx5_7", "ib0", "eth0", "mlx5_0:2", "^mlx5", "=mlx5"])
def test_a_list_that_leaves_no_device_is_reported(value: str) -> None:
    found = finding(SLUG, with_rdma(running({"NCCL_IB_HCA": value}), *DEVICES))
    assert found.severity == "warning"
    assert "matches none of the usable RDMA devices" in found.summary


def test_without_usable_devices_there_is_nothing_to_compare() -> None:
    assert is_silent(SLUG, with_rdma(running({"NCCL_IB_HCA": "mlx5_1"})))
    efa = with_rdma(running({"NCCL_IB_HCA": "mlx5"}), "rdmap16s27", link_layer="Unspecified")
    assert is_silent(SLUG, efa)


def test_quotes_are_one_finding_not_two() -> None:
    assert "quotes" in finding(SLUG, with_rdma(running({"NCCL_IB_HCA": '"mlx5_0"'}), *DEVICES)).summary


@pytest.mark.parametrize("value", ["^lo", "=eth0", "eth", "eth9", "eth0,eth1", "10.0.0.1"])
def test_tensorpipe_takes_one_exact_name(value: str) -> None:
    found = finding(SLUG, running({"TP_SOCKET_IFNAME": value}))
    assert found.severity == "warning"
    assert "127.0.0.1" in found.summary
    assert found.fixes[0].env == {"TP_SOCKET_IFNAME": "eth0"}


def test_the_right_name_for_tensorpipe_is_fine() -> None:
    assert is_silent(SLUG, running({"TP_SOCKET_IFNAME": "eth0"}))


def test_which_of_several_interfaces_tensorpipe_should_take_is_not_guessed() -> None:
    two = with_interfaces(
        running({"TP_SOCKET_IFNAME": "ens"}),
        "node01",
        interface("ens1", "10.0.0.1/24"),
        interface("ens2", "10.1.0.1/24"),
    )
    fixes = [one.fixes[0] for one in run(SLUG, two).findings if one.hosts == ("node01",)]
    assert [(fix.env, fix.commands) for fix in fixes] == [({}, ("unset TP_SOCKET_IFNAME",))]


@pytest.mark.parametrize(
    "other",
    [{"NCCL_IB_DISABLE": "1"}, {"NCCL_NET": "gIB"}, {"NCCL_NET": "AWS Libfabric"}, {"NCCL_NET": "Socket"}],
)
def test_a_list_for_a_network_that_is_not_used_leaves_nothing_out(other: dict[str, str]) -> None:
    assert is_silent(SLUG, with_rdma(running({"NCCL_IB_HCA": "rdma", **other}), *DEVICES))
