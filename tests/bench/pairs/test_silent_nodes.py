"""Nodes that have not answered: how long they are waited for, who calls them, and what follows from the calls."""

from __future__ import annotations

import pytest

from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsRound
from ncclcheck.bench.pairs.round_answers import RoundContext
from ncclcheck.bench.pairs.silent_nodes import SilentNodes, Unanswered
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.codec import encode
from ncclcheck.model.snapshot import ProbeOutcome
from ncclcheck.timeouts import NODE_PAUSE_S, ROUND_ENDS_S

SILENT, OWN = 3, 0
MEMBERS = (0, 1, 2, 4, 5)


@pytest.fixture
def lead() -> RoundContext:
    store = within_process(MemoryBackend(), 0)
    peers = {ticket: Peer(ticket, f"node{ticket}", ()) for ticket in range(6)}
    return RoundContext(store, Deadline(60.0), lambda _: None, float, peers, OWN, OWN)


def waiting(lead: RoundContext, since_s: float) -> SilentNodes:
    """One node is silent, in a round that began so long ago and was over 4 s later."""
    silent = SilentNodes(lead)
    began_s = lead.ran_s() - since_s
    silent.add([Unanswered(SILENT, 1, began_s, began_s + 4.0, 0.0)])
    return silent


def met(outcome: ProbeOutcome) -> PairAnswer:
    return PairAnswer(SCHEMA, TOOL_VERSION, reached={str(SILENT): outcome})


def test_a_few_nodes_and_node_0_call_a_silent_one_and_only_once(lead: RoundContext) -> None:
    silent = waiting(lead, 1.0)
    order = (calls := silent.calls(MEMBERS)).of_order(PairsRound(SCHEMA, TOOL_VERSION, 2))
    silent.note(calls)
    assert (order.callers, [peer.ticket for peer in order.called]) == ((0, 1, 2, 4), [SILENT])
    assert not order.is_last
    assert not silent.calls(MEMBERS).called


def test_where_nobody_else_is_there_nobody_calls(lead: RoundContext) -> None:
    assert not waiting(lead, 1.0).calls((OWN,)).called


@pytest.mark.parametrize(
    ("outcome", "since_s", "is_lost"),
    [
        ("filtered", 4.0 + ROUND_ENDS_S + 1.0, False),  # it may be paused
        ("wrong-peer", NODE_PAUSE_S - 1.0, False),
        ("wrong-peer", NODE_PAUSE_S + 1.0, True),
        ("refused", 4.0 + ROUND_ENDS_S + 1.0, True),  # its process has ended
        ("ok", 4.0 + ROUND_ENDS_S + 1.0, True),  # it is not paused, and node 0 does not hear it
        ("refused", 4.0, False),
    ],
)
def test_a_silent_node_is_waited_for_as_long_as_it_may_be_paused(
    lead: RoundContext, outcome: ProbeOutcome, since_s: float, is_lost: bool
) -> None:
    silent = waiting(lead, since_s)
    silent.take_calls({1: met(outcome)})
    _, lost = silent.look()
    assert [gone.ticket for gone in lost] == [SILENT] * is_lost


@pytest.mark.parametrize(
    ("own", "other", "path"),
    [
        ("filtered", "ok", "link"),
        ("ok", "ok", "elsewhere"),
        ("ok", "filtered", None),
        ("filtered", "filtered", None),
    ],
)
def test_a_path_is_the_cause_only_if_another_node_is_answered(
    lead: RoundContext, own: ProbeOutcome, other: ProbeOutcome, path: str | None
) -> None:
    silent = waiting(lead, NODE_PAUSE_S + 1.0)
    silent.take_calls({OWN: met(own), 1: met(other)})
    (gone,) = silent.look()[1]
    assert gone.path == path
    assert gone.is_silent


def test_a_node_that_answers_late_is_heard_and_not_lost(lead: RoundContext) -> None:
    silent = waiting(lead, NODE_PAUSE_S + 1.0)
    lead.store.set_document(
        keys.pairs_answer(1, SILENT), encode(PairAnswer(SCHEMA, TOOL_VERSION, stood_still_s=12.0))
    )
    ((entry, answer),), lost = silent.look()
    assert (entry.ticket, answer.stood_still_s, lost, silent.tickets) == (SILENT, 12.0, [], frozenset())


def test_a_pause_of_12_s_is_bridged_and_a_hang_costs_little_more() -> None:
    assert 12.0 < NODE_PAUSE_S <= 15.0
