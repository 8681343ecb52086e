"""In which direction packets get lost, by what both ends of a connection count."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.measure.watching.blocked import blocked_links, directions, named
from ncclcheck.model.job.watched import BlockedLink, Connection

A, B = ("10.0.0.1", 40001), ("10.0.0.2", 40002)


def _seen(unacknowledged: int, resent: int, heard: int | None) -> Connection:
    return Connection(3, A, B, unacknowledged, resent, heard)


def test_bytes_that_are_sent_again_and_not_acknowledged_are_blocked() -> None:
    (link,) = blocked_links("node1", [_seen(4096, 3, 100)], [_seen(4096, 6, 100)])
    assert link == BlockedLink("node1", "10.0.0.2", 3, 4096, 6, heard=False)
    assert blocked_links("node1", [_seen(0, 3, 100)], [_seen(4096, 6, 100)]) == []  # just sent
    assert blocked_links("node1", [_seen(4096, 0, 100)], [_seen(4096, 0, 100)]) == []  # the peer reads slowly
    assert blocked_links("node1", [], [_seen(4096, 3, 100)]) == []


def test_a_slow_reader_is_not_blamed_for_packets_that_got_lost_hours_ago() -> None:
    assert blocked_links("node1", [_seen(4096, 3, 100)], [_seen(4096, 3, 100)]) == []
    retried = replace(_seen(4096, 3, 100), retries=3)  # the next attempt is due after the second look
    assert [link.resent for link in blocked_links("node1", [_seen(4096, 3, 100)], [retried])] == [3]


def test_packets_that_arrive_on_a_connection_that_stands_still_are_told_too() -> None:
    (link,) = blocked_links("node1", [_seen(0, 0, 100)], [_seen(0, 0, 103)])
    assert (link.unacknowledged, link.heard) == (0, True)


def test_whoever_hears_the_other_end_sends_packets_that_get_lost() -> None:
    (text,) = directions([BlockedLink("node1", "node2", 3, 4096, 6, heard=True)])
    assert "4096 bytes from node1 to node2 are not acknowledged" in text
    assert "packets from node1 to node2 get lost, those from node2 to node1 arrive" in text


def test_the_other_end_tells_the_direction_where_this_one_hears_nothing() -> None:
    here, there = (
        BlockedLink("node1", "node2", 3, 4096, 6, heard=False),
        BlockedLink("node2", "node1", 5, 0, 0, heard=True),
    )
    (text,) = directions([here, there], seen=("node1", "node2"))
    assert "packets from node2 to node1 get lost, those from node1 to node2 arrive" in text
    (text,) = directions([here], seen=("node1", "node2"))
    assert text.endswith("packets from node1 to node2 get lost")
    (text,) = directions([here], seen=("node1",))
    assert "packets to it, from it, or both get lost" in text


def test_an_old_kernel_tells_no_direction() -> None:
    (text,) = directions([BlockedLink("node1", "node2", 3, 4096, 6)])
    assert text.endswith("packets between them get lost")


def test_peers_get_the_names_of_nodes_and_many_are_not_all_told() -> None:
    links = [BlockedLink("node1", f"10.0.0.{number}", 3, 1, 1) for number in range(9)]
    assert named(links, {"10.0.0.0": "node2"})[0].peer == "node2"
    told = directions(links)
    assert len(told) == 5
    assert "5 further pairs" in told[-1]


def test_a_node_that_hears_others_but_is_not_heard_knows_that_its_own_packets_get_lost() -> None:
    links = [
        BlockedLink("node3", "10.0.0.4", 5, 96, 4, heard=False),
        BlockedLink("node3", "10.0.0.2", 4, 0, 0, heard=True),
    ]
    (text,) = directions(links, seen=("node3",))
    assert text.endswith("packets from node3 get lost, while it hears others")
