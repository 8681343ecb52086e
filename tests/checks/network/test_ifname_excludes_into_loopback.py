"""NC202 ifname-excludes-into-loopback."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.snapshot import RankPlace, Snapshot
from tests.builders import cluster, with_choice, with_environment, without
from tests.checks.running import finding, is_silent, run

SLUG = "ifname-excludes-into-loopback"


def excluded(snapshot: Snapshot, host: str, value: str) -> Snapshot:
    """NCCL, asked on one node with that value, chose lo."""
    return with_choice(with_environment(snapshot, host, NCCL_SOCKET_IFNAME=value), host, "lo", "127.0.0.1")


def test_an_exclusion_that_keeps_lo_out_is_silent() -> None:
    assert is_silent(SLUG, with_environment(cluster(4), "node03", NCCL_SOCKET_IFNAME="^docker,lo"))


def test_an_exclusion_that_lets_lo_in_is_an_error_on_several_nodes() -> None:
    found = finding(SLUG, excluded(cluster(4), "node03", "^docker0"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.fixes[0].env == {"NCCL_SOCKET_IFNAME": "^docker0,lo"}


def test_all_nodes_with_it_are_one_finding() -> None:
    broken = cluster(4)
    for node in broken.nodes:
        broken = excluded(broken, node.host, "^docker0")
    assert finding(SLUG, broken).hosts == ("node01", "node02", "node03", "node04")


def test_on_one_node_it_is_a_warning() -> None:
    assert finding(SLUG, excluded(cluster(1), "node01", "^docker0")).severity == "warning"


def test_lo_by_name_is_another_matter() -> None:
    assert is_silent(SLUG, excluded(cluster(4), "node03", "lo"))


def test_without_the_environment_nothing_is_known() -> None:
    assert run(SLUG, without(cluster(4), "node03", "environment")).outcome == "unknown"


@pytest.mark.parametrize(
    ("value", "fixed"),
    [
        ("^docker,^lo", "^docker,lo"),
        ("^docker, lo", "^docker,lo"),
        ('^"docker0,lo"', "^docker0,lo"),
        ("^=docker0", "^=docker0,lo"),
        ("^docker0,", "^docker0,lo"),
        ("^docker*", "^docker,lo"),
    ],
)
def test_an_exclusion_with_another_slip_is_one_finding_whose_fix_mends_both(value: str, fixed: str) -> None:
    broken = excluded(cluster(4), "node03", value)
    assert finding(SLUG, broken).fixes[0].env == {"NCCL_SOCKET_IFNAME": fixed}
    assert is_silent("env-bad-value", broken)


def test_an_exclusion_of_a_further_rank_alone_is_told() -> None:
    odd = replace(cluster(4), ranks=(RankPlace(9, "node02", 1, 1, 32, {"NCCL_SOCKET_IFNAME": "^docker0"}),))
    found = finding(SLUG, odd)
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "rank 9" in found.evidence[0].subject
