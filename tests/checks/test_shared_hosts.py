"""A node whose name another one has too is told with its address and rank."""

from __future__ import annotations

from ncclcheck.checks.shared_hosts import host_text
from tests.builders import cluster, with_facts
from tests.checks.network.test_hostname_shared import sharing
from tests.fact_builders import GONE


def test_only_a_shared_name_needs_the_place() -> None:
    assert host_text(sharing(), "node01") == "node01"
    assert host_text(sharing(), "node#2") == "node#2 (10.0.0.3, node rank 2)"
    assert host_text(cluster(3), "node02") == "node02"


def test_without_a_known_address_the_rank_tells() -> None:
    unread = with_facts(sharing(), "node#2", interfaces=GONE)
    assert host_text(unread, "node#2") == "node#2 (address not known, node rank 2)"
