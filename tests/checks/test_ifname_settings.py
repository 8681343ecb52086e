"""NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME as they are in effect."""

from __future__ import annotations

from ncclcheck.checks.ifname_settings import not_settled, settings
from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from tests.builders import cluster, with_environment, with_facts, without
from tests.fact_builders import answer


def test_the_environment_wins_over_a_config_file() -> None:
    file = NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "eth"})
    choice = NcclChoice(answer("10.0.0.1", "eth0"), (file,), True)
    by_file = with_facts(cluster(1), "node01", nccl=choice)
    assert [(setting.nccl, setting.nccl_source) for setting in settings(by_file)] == [
        ("eth", "/etc/nccl.conf")
    ]
    by_both = with_environment(by_file, "node01", NCCL_SOCKET_IFNAME="=eth0")
    assert [(setting.nccl, setting.nccl_source) for setting in settings(by_both)] == [
        ("=eth0", "environment")
    ]


def test_one_character_counts_as_unset() -> None:
    (one,) = settings(with_environment(cluster(1), "node01", NCCL_SOCKET_IFNAME="^", GLOO_SOCKET_IFNAME="e"))
    assert (one.nccl, one.gloo) == (None, None)


def test_a_node_with_a_missing_part_is_named() -> None:
    broken = without(without(cluster(3), "node01", "environment"), "node02", "interfaces")
    assert [setting.host for setting in settings(broken)] == ["node03"]
    assert [known.hosts for known in not_settled(broken)] == [("node01",), ("node02",)]
