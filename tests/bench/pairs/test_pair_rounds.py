"""Node 0's rounds over a real store with scripted nodes: who is slow, who answers no more, and an end to every wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

import pytest
from msgspec.structs import replace

from ncclcheck.bench.pairs import silent_nodes
from ncclcheck.bench.pairs.matrix_result import fabric_matrix
from ncclcheck.bench.pairs.pair_node import answer_of
from ncclcheck.bench.pairs.pair_orders import ROUND_LIMIT_BYTES, PairAnswer, PairsRound
from ncclcheck.bench.pairs.pair_result import pair_isolation
from ncclcheck.bench.pairs.pair_rounds import Rounds, lead_rounds
from ncclcheck.bench.pairs.pair_task import PairResult
from ncclcheck.bench.pairs.round_answers import RoundContext
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION, read_message
from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.measure.matrix.matrix_plan import matrix_plan
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import ProbeOutcome

PLAN = Plan(1)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is silent here is silent for good: nobody has to be waited for."""
    monkeypatch.setattr(silent_nodes, "NODE_PAUSE_S", 0.0)


Answer = Callable[[PairsRound, int], "PairAnswer | None"]


def led(
    nodes: int,
    answer: Answer,
    plan: Plan = PLAN,
    backend: MemoryBackend | None = None,
    store: DeadlineStore | None = None,
    stood_still_s: Callable[[], float] = float,
    own: int | None = 0,
) -> Rounds:
    """Rounds in which each node answers as `answer` says; None: it answers no more. Node 0 has the ticket 0."""
    backend, seconds = backend or MemoryBackend(), 30.0
    done = threading.Event()

    def node(ticket: int) -> None:
        store = within_process(backend, 0)
        number = 0
        for _ in polls(Deadline(seconds)):
            data = store.get_document(keys.pairs_round(number))
            if done.is_set():
                return
            if isinstance(data, Missing):
                continue
            said = answer(read_message(data, PairsRound, ROUND_LIMIT_BYTES), ticket)
            if said is None:
                return
            store.set_document(keys.pairs_answer(number, ticket), encode(said))
            number += 1

    threads = [threading.Thread(target=node, args=(ticket,)) for ticket in range(nodes)]
    for thread in threads:
        thread.start()
    own_store = store or within_process(backend, 0)
    peers = {ticket: Peer(ticket, f"node{ticket}", ()) for ticket in range(nodes)}
    lead = RoundContext(own_store, Deadline(seconds), lambda _: None, stood_still_s, peers, own, 0)
    try:
        return lead_rounds(lead, range(nodes), plan, lambda _: None)
    finally:
        done.set()
        for thread in threads:
            thread.join()


def sound(planned: PairsRound, ticket: int, slow: int = -1) -> PairAnswer:
    pair = planned.group_of(ticket) or ()
    return PairAnswer(SCHEMA, TOOL_VERSION, received_gbit_s=5.0 if slow in pair else 10.0, seconds=0.1)


def test_a_slow_node_is_found_by_its_pairs() -> None:
    rounds = led(8, lambda planned, ticket: sound(planned, ticket, slow=3))
    found = pair_isolation({ticket: f"node{ticket}" for ticket in range(8)}, Plan(1), rounds)
    assert [(node.host, node.verdict) for node in found.nodes] == [("node3", "slow")]
    assert rounds.is_finished
    assert found.rounds[0].pairs[0].outcome in ("ok", "slow")


@pytest.mark.parametrize("at_round", [0, 1, 2])
def test_where_node_0_loses_its_own_store_nobody_is_called_hanging(at_round: int) -> None:
    backend = MemoryBackend()
    store = DeadlineStore(backend, 0)

    def answer(planned: PairsRound, ticket: int) -> PairAnswer | None:
        if planned.number == at_round:
            store.give_up(Missing("timeout", "its mount hangs"))
            return None
        return sound(planned, ticket)

    rounds = led(4, answer, backend=backend, store=store)
    assert rounds.lost == ()
    assert not rounds.is_finished
    assert {test.outcome for test in rounds.tests} <= {"ok"}


def test_a_node_that_answers_no_more_is_lost_and_the_others_go_on() -> None:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer | None:
        if ticket == 2 and planned.number == 1:
            return None
        return sound(planned, ticket)

    rounds = led(6, answer)
    assert [(lost.ticket, lost.outcome, lost.round) for lost in rounds.lost] == [(2, "hang", 1)]
    found = pair_isolation({ticket: f"node{ticket}" for ticket in range(6)}, Plan(1), rounds)
    assert [(node.host, node.verdict) for node in found.nodes] == [("node2", "hang")]


def test_a_node_that_answers_after_its_round_was_over_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        silent_nodes, "ROUND_ENDS_S", 25.0
    )  # a loaded machine may let it wait before it answers
    backend = MemoryBackend()
    over = within_process(backend, 0)

    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        if ticket == 2 and planned.number == 1:
            assert any(over.get(keys.pairs_over(1)) == b"1" for _ in polls(Deadline(25.0)))
        return sound(planned, ticket)

    rounds = led(8, answer, backend=backend)
    assert rounds.lost == ()
    assert any(2 in test.pair and test.outcome == "hang" for test in rounds.tests)
    assert any(2 in test.pair and test.outcome == "ok" for test in rounds.tests)
    found = pair_isolation({ticket: f"node{ticket}" for ticket in range(8)}, Plan(1), rounds)
    assert found.nodes == ()


def test_matrix_goes_on_with_two_nodes_where_the_third_fails_before_the_first_round() -> None:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        if ticket == 2:
            return PairAnswer(SCHEMA, TOOL_VERSION, outcome="died", detail="No module named torch", own=True)
        return sound(planned, ticket)

    plan = matrix_plan(range(3))
    rounds = led(3, answer, plan)
    found = fabric_matrix({ticket: f"node{ticket}" for ticket in range(3)}, plan, rounds)
    assert isinstance(found, FabricMatrix)
    assert found.is_finished
    assert [(cell.from_host, cell.to_host) for cell in found.cells] == [
        ("node0", "node1"),
        ("node1", "node0"),
    ]
    assert [(node.host, node.outcome) for node in found.nodes] == [("node2", "died")]


def test_a_node_whose_own_process_fails_is_named_with_its_words() -> None:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        if ticket == 1 and planned.number == 0:
            return PairAnswer(SCHEMA, TOOL_VERSION, outcome="died", detail="No module named torch", own=True)
        return sound(planned, ticket)

    rounds = led(4, answer)
    found = pair_isolation({ticket: f"node{ticket}" for ticket in range(4)}, Plan(1), rounds)
    assert [(node.host, node.verdict, node.detail) for node in found.nodes] == [
        ("node1", "died", "No module named torch")
    ]


def test_a_node_whose_data_is_wrong_is_named_though_it_is_fast() -> None:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        if 3 in (planned.group_of(ticket) or ()):
            return answer_of([PairResult(planned.number, received_gbit_s=10.0, wrong=7)], 0.1)
        return sound(planned, ticket)

    found = pair_isolation({ticket: f"node{ticket}" for ticket in range(8)}, Plan(1), led(8, answer))
    (node,) = found.nodes
    assert (node.host, node.verdict) == ("node3", "died")
    assert node.detail == "7 bytes arrived with wrong values"


def silent_from(round_number: int, *silent: int) -> Answer:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer | None:
        return None if ticket in silent and planned.number == round_number else sound(planned, ticket)

    return answer


def hosts(count: int) -> dict[int, str]:
    return {ticket: f"node{ticket}" for ticket in range(count)}


def test_most_nodes_that_fall_silent_in_one_round_point_to_node_0_and_are_not_named() -> None:
    rounds = led(4, silent_from(1, 1, 2, 3))
    assert rounds.lost == ()
    found = pair_isolation(hosts(4), PLAN, rounds)
    assert found.nodes == ()
    assert {"node1", "node2", "node3"} <= set(found.undecided)
    assert found.unheard is not None
    assert found.unheard.hosts == ("node1", "node2", "node3")
    assert "points to node 0" in found.unheard.words


def test_two_silent_nodes_of_six_are_named_each() -> None:
    found = pair_isolation(hosts(6), PLAN, led(6, silent_from(1, 1, 2)))
    assert [(node.host, node.verdict) for node in found.nodes] == [("node1", "hang"), ("node2", "hang")]
    assert found.unheard is None


def test_a_node_that_falls_silent_while_node_0_stood_still_is_not_named() -> None:
    began = time.monotonic()
    rounds = led(6, silent_from(1, 2), stood_still_s=lambda: 5.0 if time.monotonic() - began > 1.0 else 0.0)
    found = pair_isolation(hosts(6), PLAN, rounds)
    assert found.nodes == ()
    assert found.undecided == ("node2",)
    assert found.unheard is not None
    assert "node 0 itself stood still for 5 s" in found.unheard.words


def test_the_matrix_without_most_nodes_is_not_finished_and_names_none_of_them() -> None:
    plan = matrix_plan(range(4))
    found = fabric_matrix(hosts(4), plan, led(4, silent_from(1, 1, 2), plan))
    assert isinstance(found, FabricMatrix)
    assert not found.is_finished
    assert found.nodes == ()
    assert found.unheard is not None
    assert found.unheard.hosts == ("node1", "node2")


def test_of_two_nodes_the_silent_one_is_not_named() -> None:
    found = pair_isolation(hosts(2), PLAN, led(2, silent_from(1, 1)))
    assert found.nodes == ()
    assert found.unheard is not None
    assert "takes a third one to tell" in found.unheard.words


def test_who_falls_silent_after_most_others_did_is_not_named_either() -> None:
    """Of five nodes one has no partner in the first round, so it answers before node 0 is cut off."""

    def answer(planned: PairsRound, ticket: int) -> PairAnswer | None:
        is_idle = planned.number == 1 and planned.group_of(ticket) is None
        return sound(planned, ticket) if ticket == 0 or planned.number == 0 or is_idle else None

    found = pair_isolation(hosts(5), PLAN, led(5, answer))
    assert found.nodes == ()
    assert found.unheard is not None
    assert found.unheard.hosts == ("node1", "node2", "node3", "node4")


def called(silent: int, outcome: Callable[[int], ProbeOutcome]) -> Answer:
    """That node is silent from round 1 on, and others meet this when they call it."""

    def answer(planned: PairsRound, ticket: int) -> PairAnswer | None:
        if ticket == silent and planned.number > 0:
            return None
        said = sound(planned, ticket)
        is_caller = ticket in planned.callers
        return replace(said, reached={str(silent): outcome(ticket)}) if is_caller else said

    return answer


def test_a_node_that_answers_others_and_not_node_0_is_cut_off_and_not_named() -> None:
    found = pair_isolation(hosts(6), PLAN, led(6, called(3, lambda caller: "ok" if caller else "filtered")))
    assert found.nodes == ()
    assert {(link.from_host, link.to_host, link.verdict) for link in found.links} == {
        ("node0", "node3", "blocked"),
        ("node3", "node0", "blocked"),
    }
    assert "called by node1, node2 and node4, it answers" in found.links[0].detail


@pytest.mark.parametrize("own", [0, None])
def test_a_node_that_answers_all_calls_leaves_it_open_which_path_is_cut(own: int | None) -> None:
    found = pair_isolation(hosts(6), PLAN, led(6, called(3, lambda _: "ok"), own=own))
    assert (found.nodes, found.links, found.undecided) == ((), (), ("node3",))
    assert found.unheard is not None
    assert "other nodes reach it" in found.unheard.words


@pytest.mark.parametrize(
    ("outcome", "words"),
    [("refused", "has ended"), ("wrong-peer", "its ncclcheck does not"), ("filtered", "nothing")],
)
def test_a_node_that_answers_nobody_is_named_with_what_the_others_met(
    outcome: ProbeOutcome, words: str
) -> None:
    (node,) = pair_isolation(hosts(6), PLAN, led(6, called(3, lambda _: outcome))).nodes
    assert (node.host, node.verdict) == ("node3", "hang")
    assert words in node.detail


def test_a_node_that_lives_and_does_not_reach_the_store_of_node_0_is_cut_off() -> None:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        if planned.number > 0 and 3 in (planned.group_of(ticket) or ()):
            said = PairAnswer(SCHEMA, TOOL_VERSION, outcome="hang", detail="its partner did not go on")
            return replace(said, no_store="10.0.0.1:29500: filtered" if ticket == 3 else "")
        return sound(planned, ticket)

    found = pair_isolation(hosts(6), PLAN, led(6, answer, own=None))
    assert found.nodes == ()
    assert {(link.from_host, link.to_host) for link in found.links} == {
        ("node0", "node3"),
        ("node3", "node0"),
    }
    assert "10.0.0.1:29500: filtered" in found.links[0].detail


def pausing(ticket_: int, rounds: Collection[int]) -> Answer:
    """That node stands still in these rounds, in which its pair does not go on."""

    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        if planned.number not in rounds or ticket_ not in (planned.group_of(ticket) or ()):
            return sound(planned, ticket)
        said = PairAnswer(SCHEMA, TOOL_VERSION, outcome="died", detail="broken pipe", own=ticket == ticket_)
        return replace(said, stood_still_s=12.0 if ticket == ticket_ else 0.0)

    return answer


def test_a_round_in_which_a_node_stood_still_says_nothing_of_it() -> None:
    rounds = led(6, pausing(3, {1}))
    found = pair_isolation(hosts(6), PLAN, rounds)
    assert (found.nodes, found.links, found.undecided) == ((), (), ())
    assert found.paused == {"node3": 12.0}
    assert all(test.outcome == "ok" for test in rounds.tests)


def test_of_three_nodes_a_round_that_says_nothing_is_made_up_for() -> None:
    found = pair_isolation(hosts(3), PLAN, led(3, pausing(1, {1, 2})))
    assert (found.nodes, found.undecided) == ((), ())
    assert found.coverage.pairs_tested == 3


def test_a_node_that_stands_still_again_and_again_is_judged_as_it_is() -> None:
    found = pair_isolation(hosts(6), PLAN, led(6, pausing(3, range(1, 30))))
    assert [(node.host, node.verdict) for node in found.nodes] == [("node3", "died")]


@pytest.mark.parametrize(
    ("outcome", "expected"), [("filtered", {("node1", "node2"), ("node2", "node1")}), ("ok", set())]
)
def test_a_path_by_which_no_call_comes_through_either_is_blocked(
    outcome: ProbeOutcome, expected: set[tuple[str, str]]
) -> None:
    def answer(planned: PairsRound, ticket: int) -> PairAnswer:
        said = sound(planned, ticket)
        if planned.group_of(ticket) in ((1, 2), (2, 1)):
            said = PairAnswer(SCHEMA, TOOL_VERSION, outcome="hang", detail="its partner did not go on")
        called = {peer.ticket for peer in planned.called} - {ticket}
        met: dict[str, ProbeOutcome] = {
            str(other): outcome if {ticket, other} == {1, 2} else "ok" for other in called
        }
        return replace(said, reached=met if ticket in planned.callers else {})

    found = pair_isolation(hosts(4), PLAN, led(4, answer))
    assert found.nodes == ()
    assert {(link.from_host, link.to_host) for link in found.links if link.detail} == expected
    assert expected == set() or found.undecided == ()
