"""A failed probe counts only where the called node was there to answer."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.probe.both_ends import with_nccl_there, without_the_silent
from ncclcheck.model.snapshot import Probe


def test_what_others_met_at_a_node_that_ended_meanwhile_says_nothing_about_the_network() -> None:
    refused = Probe("tcp", "node1", "node2", "eth0", "10.0.0.2", 1, "refused", detail="ECONNREFUSED")
    open_way = Probe("tcp", "node1", "node3", "eth0", "10.0.0.3", 1, "ok")
    assert without_the_silent((refused, open_way), frozenset()) == (refused, open_way)
    first, second = without_the_silent((refused, open_way), frozenset({"node2"}))
    assert first.outcome == "error"
    assert first.detail == "refused (ECONNREFUSED), and node2 itself did not answer any more"
    assert second == open_way


def test_a_refusal_at_nccls_listener_counts_only_where_the_node_still_has_it() -> None:
    refused = Probe("tcp", "a", "b", "eth0", "10.0.0.2", 4000, "refused", listener="nccl")
    ours = replace(refused, listener="ncclcheck")
    assert with_nccl_there([refused, ours], {"b"}) == [refused, ours]
    gone, kept = with_nccl_there([refused, ours], {"a"})
    assert (gone.outcome, kept) == ("error", ours)
    assert "b does not have it any more" in gone.detail
