"""Node 0's bookkeeping: who is on the roster, who is silent, which messages are refused. Real stores, no cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.block import advise
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import Arrivals, gather_hellos
from ncclcheck.exchange.messages import SCHEMA, Confirmed, Hello, Report
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import serve
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Knock, Probe, Snapshot
from ncclcheck.run.lead import (
    Member,
    Orders,
    confirm_advice,
    one_per_place,
    read_members,
    roster,
    silent_nodes,
    silent_ranks,
    with_late_claims,
    with_nccl_there,
    without_the_silent,
)
from tests.advice.clusters import two_networks, with_probes
from tests.fact_builders import answer, launch, master_path, node_facts


def hello(node_rank: int, host: str, nnodes: int = 3) -> Hello:
    return Hello(SCHEMA, "0.1.0", host, launch(node_rank, nnodes))


def test_hosts_that_share_a_name_are_told_apart_by_their_rank() -> None:
    arrivals = Arrivals({1: hello(0, "ubuntu"), 2: hello(1, "ubuntu"), 3: hello(2, "gpu3")}, {}, 0.1)
    assert [one.host for one in roster(arrivals)] == ["ubuntu#0", "ubuntu#1", "gpu3"]


def test_two_processes_in_one_place_are_one_node_with_two_claims() -> None:
    arrivals = Arrivals({1: hello(0, "node1"), 2: hello(1, "node2"), 3: hello(1, "node2")}, {}, 0.1)
    members = roster(arrivals)
    assert [one.host for one in members] == ["node1", "node2", "node2"]
    assert [one.ticket for one in one_per_place(members)] == [1, 2]


def test_who_comes_late_to_a_place_that_is_taken_clashes_with_whom_has_it() -> None:
    three = Snapshot(
        nodes=(), claims=tuple(launch(rank, 3) for rank in (0, 1)), claim_hosts=("node0", "node1")
    )
    seen = with_late_claims(three, (hello(1, "node1"), hello(2, "node2")))
    assert [(claim.node_rank, host) for claim, host in zip(seen.claims, seen.claim_hosts, strict=True)] == [
        (0, "node0"),
        (1, "node1"),
        (1, "node1"),
    ]


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


def test_a_node_that_never_came_is_silent_and_named_by_what_is_known_of_it() -> None:
    arrivals = Arrivals({1: hello(0, "node1")}, {}, 30.0)
    knock = Knock("node2", 1, master_path(1, outcome="filtered"))
    silent = silent_nodes(launch(0, 3), arrivals, {1: knock})
    assert [one.host for one in silent] == ["node2", "node-rank-2"]
    assert silent[0].knock == knock
    assert isinstance(silent[1].knock, Missing)


def test_clashing_ranks_make_nobody_silent() -> None:
    arrivals = Arrivals({1: hello(0, "a"), 2: hello(1, "b"), 3: hello(1, "c")}, {}, 2.0)
    assert silent_nodes(launch(0, 3), arrivals, {}) == ()


def test_a_rank_that_never_came_is_silent_though_its_node_is_there() -> None:
    there = {
        ticket: Hello(SCHEMA, "0.1.0", f"node{node}", launch(node, 2, local_rank=local, local_world_size=2))
        for ticket, (node, local) in enumerate([(0, 0), (0, 1), (1, 0)])
    }
    (silent,) = silent_ranks(Arrivals(there, {}, 10.0))
    assert (silent.host, silent.node_rank) == ("node1-local-rank-1", 1)
    assert silent_nodes(launch(0, 2), Arrivals(there, {}, 10.0), {}) == ()


@pytest.fixture(scope="module")
def store() -> Store:
    server = serve(0, "test/", Deadline(60))
    assert not isinstance(server, Missing)
    return server


@pytest.mark.slow
def test_a_node_that_does_not_say_what_nccl_chooses_there_with_the_proposal_is_silent_and_a_note_says_so(
    store: Store,
) -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0")
    agents = (Member(201, launch(0, 2), "node01"), Member(202, launch(1, 2), "node02"))
    said = Confirmed(SCHEMA, "0.1.0", (answer("10.0.1.1", "eth1"),))
    store.set_document("answer/0/201", encode(said))
    asked = confirm_advice(Orders(store), store, agents, snapshot, Deadline(3.5))
    first, second = asked.confirmations
    assert (first.host, first.env, first.answer) == (
        "node01",
        {"NCCL_SOCKET_IFNAME": "eth1"},
        said.answers[0],
    )
    assert isinstance(second.answer, Missing)
    assert [(one.host, one.phase) for one in asked.silent] == [("node02", "confirm")]
    assert advise(asked).env == ()
    assert "nothing is known of node02" in advise(asked).notes[0]


def test_without_the_time_for_it_no_node_is_asked_and_none_is_silent(store: Store) -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0")
    agents = (Member(201, launch(0, 2), "node01"), Member(202, launch(1, 2), "node02"))
    assert confirm_advice(Orders(store), store, agents, snapshot, Deadline(2.5)) == snapshot


def nothing(_: object) -> None:
    """Nobody listens."""


@pytest.mark.slow
def test_garbage_hellos_are_refused_and_the_others_still_read(store: Store) -> None:
    messages = [
        encode(hello(0, "node1")),
        b"\x80\x04garbage",
        b'{"schema_version": "99"}',
        encode(hello(1, "node2")),
    ]
    for message in messages:
        store.set_document(f"hello/{store.add('tickets', 1)}", message)
    arrivals = gather_hellos(store, launch(0, 4), dict, Deadline(10), nothing)
    assert sorted(one.host for one in arrivals.hellos.values()) == ["node1", "node2"]
    assert "schema version '99'" in arrivals.refused[3]
    assert arrivals.waited_s < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\x80\x04\x95 pickle", "malformed"),
        (b'{"schema_version":"1","facts":[],"targets":[]}', "facts"),
        (b'{"schema_version": "2", "tool_version": "9.9"}', "schema version '2' of ncclcheck '9.9'"),
        (b'{"schema_version":"1","x":"' + b"a" * (6 << 20) + b'"}', "more than"),
    ],
)
def test_facts_that_are_no_facts_are_refused_with_the_reason(
    store: Store, message: bytes, reason: str
) -> None:
    good = Report(SCHEMA, "0.1.0", node_facts(0, 2), ())
    store.set_document("facts/101", encode(good))
    store.set_document("facts/102", message)
    members = (Member(101, launch(0, 2), "node1"), Member(102, launch(1, 2), "node2"))
    snapshot, _ = read_members(store, members, Arrivals({}, {}, 0.0), Deadline(20))
    assert [node.host for node in snapshot.nodes] == ["node1"]
    (refused,) = snapshot.refused
    assert refused.host == "node2"
    assert reason in refused.reason
    assert [one.host for one in snapshot.silent] == ["node2"]
