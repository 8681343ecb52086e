"""What the real library chooses with a proposal, as far as the nodes say so."""

from __future__ import annotations

import pytest

from ncclcheck.advice.block import advise
from ncclcheck.exchange.messages import SCHEMA
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.run.steps.confirm import CONFIRM, Confirmed
from tests.advice.clusters import two_networks, with_probes
from tests.bench.nodes.benches import session
from tests.fact_builders import answer, launch


@pytest.mark.slow
def test_node_that_does_not_confirm_the_proposal_is_silent_with_a_note(
    store: Store,
) -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0")
    agents = (Member(201, launch(0, 2), "node01"), Member(202, launch(1, 2), "node02"))
    said = Confirmed(SCHEMA, "0.1.0", (answer("10.0.1.1", "eth1"),))
    store.set_document("answer/0/201", encode(said))
    asked = CONFIRM.lead(session(store, snapshot, 3.5, agents))
    first, second = asked.confirmations
    assert (first.host, first.env, first.answer) == (
        "node01",
        {"NCCL_SOCKET_IFNAME": "eth1"},
        said.answers[0],
    )
    assert isinstance(second.answer, Missing)
    assert [(silent.host, silent.phase) for silent in asked.silent] == [("node02", "confirm")]
    assert advise(asked).env == ()
    assert "no results from node02" in advise(asked).notes[0]


def test_without_the_time_for_it_no_node_is_asked_and_none_is_silent(store: Store) -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0")
    agents = (Member(201, launch(0, 2), "node01"), Member(202, launch(1, 2), "node02"))
    assert CONFIRM.lead(session(store, snapshot, 2.5, agents)) == snapshot
