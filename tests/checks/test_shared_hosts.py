"""A node whose name another one has too is told with its address and rank."""

from __future__ import annotations

from ncclcheck.checks.shared_hosts import who
from tests.builders import cluster, with_facts
from tests.checks.network.test_hostname_shared import sharing
from tests.fact_builders import GONE


def test_only_a_shared_name_needs_the_place() -> None:
    assert who(sharing(), "node01") == "node01"
    assert who(sharing(), "node#2") == "node#2 (10.0.0.3, node rank 2)"
    assert who(cluster(3), "node02") == "node02"


def test_without_a_known_address_the_rank_tells() -> None:
    unread = with_facts(sharing(), "node#2", interfaces=GONE)
    assert who(unread, "node#2") == "node#2 (address not known, node rank 2)"
