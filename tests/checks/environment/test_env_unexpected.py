"""NC608 env-unexpected."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.facts import NcclConfigFile
from ncclcheck.model.snapshot import RankPlace, Snapshot
from tests.builders import cluster, node, with_environment, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some
from tests.policies import with_policy


def demanding(line: str, snapshot: Snapshot | None = None) -> Snapshot:
    return with_policy(snapshot or cluster(2), f"[environment]\n{line}\n")


@pytest.mark.parametrize(
    ("line", "observed"),
    [
        ('NCCL_DEBUG = "INFO"', "WARN"),
        ('NCCL_DEBUG = ["INFO", "TRACE"]', "WARN"),
        ("NCCL_DEBUG = false", "WARN"),
        ("NCCL_IB_HCA = true", "not set"),
        ('NCCL_IB_HCA = "mlx5"', "not set"),
    ],
)
def test_a_variable_that_is_otherwise_is_an_error(line: str, observed: str) -> None:
    found = finding("env-unexpected", demanding(line))
    assert (found.severity, found.hosts, found.evidence[0].observed) == (
        "error",
        ("node01", "node02"),
        observed,
    )
    assert "environment; site.toml, line 2" in found.evidence[0].source


@pytest.mark.parametrize(
    "line",
    ['NCCL_DEBUG = "WARN"', 'NCCL_DEBUG = ["INFO", "WARN"]', "NCCL_DEBUG = true", "NCCL_IB_HCA = false"],
)
def test_a_variable_that_is_as_demanded_is_silent(line: str) -> None:
    assert is_silent("env-unexpected", demanding(line))


def test_a_further_rank_is_judged_where_it_differs() -> None:
    other = RankPlace(1, "node02", 1, 1, 4, {"NCCL_DEBUG": "TRACE"})
    snapshot = replace(demanding('NCCL_DEBUG = "WARN"'), ranks=(other,))
    found = finding("env-unexpected", snapshot)
    assert found.hosts == ("node02",)
    assert "NCCL_DEBUG of rank 1" in found.summary


def test_a_configuration_file_of_nccl_counts() -> None:
    snapshot = demanding('NCCL_IB_HCA = "mlx5"')
    for one in snapshot.nodes:
        choice = some(node(snapshot, one.host).facts.nccl)
        files = (NcclConfigFile("/etc/nccl.conf", {"NCCL_IB_HCA": "mlx5"}),)
        snapshot = with_facts(snapshot, one.host, nccl=replace(choice, config_files=files))
    assert is_silent("env-unexpected", snapshot)
    choice = some(node(snapshot, "node02").facts.nccl)
    unread = replace(choice, config_files=(NcclConfigFile("/etc/nccl.conf", GONE),))
    assert run("env-unexpected", with_facts(snapshot, "node02", nccl=unread)).outcome == "unknown"


def test_a_hidden_value_can_be_there_and_no_more() -> None:
    snapshot = with_environment(cluster(1), "node01", NCCL_X="(redacted)")
    assert is_silent("env-unexpected", demanding("NCCL_X = true", snapshot))
    assert run("env-unexpected", demanding('NCCL_X = "a"', snapshot)).outcome == "unknown"


def test_an_empty_value_is_a_value() -> None:
    snapshot = with_environment(cluster(1), "node01", NCCL_X="")
    assert is_silent("env-unexpected", demanding('NCCL_X = ""', snapshot))
    assert finding("env-unexpected", demanding('NCCL_X = "a"', snapshot)).evidence[0].observed == "empty"
