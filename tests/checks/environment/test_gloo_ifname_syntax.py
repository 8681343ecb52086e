"""NC607 gloo-ifname-syntax."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.builders import cluster, node, with_environment, with_facts, with_interfaces
from tests.checks.environment.clusters import running, with_further_rank
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, some

SLUG = "gloo-ifname-syntax"
NAME = "GLOO_SOCKET_IFNAME"


@pytest.mark.parametrize("value", ["eth0", "eth0,", "", "ens77", "eth0,ens77"])
def test_exact_names_are_silent_whether_they_exist_or_not(value: str) -> None:
    assert is_silent(SLUG, running({NAME: value}))


@pytest.mark.parametrize(
    ("value", "words", "better"),
    [
        ("^docker0", "'^' as part of the name", "eth0"),
        ("^lo,docker", "'^' as part of the name", "eth0"),
        ("=eth0", "'=' as part of the name", "eth0"),
        ("eth", "only how eth0 begins", "eth0"),
        (" eth0", "blanks and quotes", "eth0"),
        ('"eth0"', "blanks and quotes", "eth0"),
        ("eth0, eth0", "blanks and quotes", "eth0"),
        (",eth0", "empty entry", None),
    ],
)
def test_what_only_nccl_understands_is_an_error(value: str, words: str, better: str | None) -> None:
    found = finding(SLUG, running({NAME: value}))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert words in found.summary
    assert "every Gloo group fails" in found.summary
    assert found.fixes[0].env == ({NAME: better} if better else {})


def test_an_interface_without_an_address_is_an_error_on_its_node_only() -> None:
    snapshot = with_interfaces(
        running({NAME: "eth0"}), "node02", interface("eth0"), interface("eth1", "10.0.0.2/24")
    )
    found = finding(SLUG, snapshot)
    assert found.hosts == ("node02",)
    assert "eth0 has no address" in found.summary


def test_no_fix_is_offered_if_several_interfaces_match_the_prefix() -> None:
    two = with_interfaces(
        cluster(2), "node02", interface("eth0", "10.0.0.2/24"), interface("eth1", "10.1.0.2/24")
    )
    found = finding(SLUG, with_environment(two, "node02", GLOO_SOCKET_IFNAME="eth"))
    assert found.fixes[0].env == {}


def test_an_alias_label_is_a_name_of_its_own() -> None:
    first = some(node(cluster(2), "node02").facts.interfaces)[1]
    alias = replace(first, addresses=(replace(first.addresses[0], label="eth0:1"),))
    snapshot = with_facts(running({NAME: "eth0:1"}), "node02", interfaces=(alias,))
    assert is_silent(SLUG, with_environment(snapshot, "node01", GLOO_SOCKET_IFNAME="eth0"))


def test_a_single_character_counts_as_not_set() -> None:
    assert finding(SLUG, running({NAME: "^"})).severity == "warning"


def test_a_value_that_was_not_kept_is_not_known() -> None:
    assert run(SLUG, running({NAME: "(redacted)"})).outcome == "unknown"


def test_a_further_rank_is_named() -> None:
    assert "rank 3" in finding(SLUG, with_further_rank(running({}), 3, GLOO_SOCKET_IFNAME="^lo")).summary


def test_the_loopback_interface_joins_no_nodes() -> None:
    found = finding(SLUG, running({NAME: "lo"}))
    assert (found.severity, found.fixes[0].env) == ("error", {NAME: "eth0"})
    assert "other nodes cannot reach" in found.summary
    assert is_silent(SLUG, running({NAME: "lo"}, nodes=1))
