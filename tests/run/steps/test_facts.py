"""Reports of nodes are read strictly: what is no report is refused, and its node is silent."""

from __future__ import annotations

import threading
import time

import pytest

from ncclcheck.exchange.announcements import Announced
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.node_report import NOTHING_COMMON, report_message
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.codec import encode
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.steps.facts import read_members
from tests.bench.nodes.benches import session
from tests.fact_builders import launch, node_facts

MEMBERS = (Member(101, launch(0, 2), "node1"), Member(102, launch(1, 2), "node2"))


def announce(store: Store, ticket: int, facts: bytes | None = None) -> None:
    digest = "" if facts is None else digest_of(facts)
    store.set_document(keys.announced(ticket), encode(Announced(SCHEMA, TOOL_VERSION, (), (), digest)))


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
    good = report_message(node_facts(0, 2), (), NOTHING_COMMON)
    store.set_document("facts/101", good)
    store.set_document("facts/102", message)
    announce(store, 101)
    announce(store, 102)
    snapshot = read_members(session(store, Snapshot(nodes=()), 20), MEMBERS)
    assert [node.host for node in snapshot.nodes] == ["node1"]
    (refused,) = snapshot.refused
    assert refused.host == "node2"
    assert reason in refused.reason
    assert [silent.host for silent in snapshot.silent] == ["node2"]


@pytest.mark.parametrize("announced_late", [True, False])
def test_what_somebody_reported_before_a_node_did_is_replaced_by_its_own_report(
    store: Store, announced_late: bool
) -> None:
    first, forged, own = (report_message(node_facts(rank, 2), (), NOTHING_COMMON) for rank in (0, 0, 1))
    store.set_document("facts/101", first)
    announce(store, 101, first)
    store.set_document("facts/102", forged)
    at = session(store, Snapshot(nodes=()), 20)
    at.state.reports.take(102, forged)

    def report() -> None:
        time.sleep(0.2)
        announce(store, 102, own)
        store.set_document("facts/102", own)

    late = threading.Thread(target=report)
    if announced_late:
        late.start()
    else:
        announce(store, 102, own)
        store.set_document("facts/102", own)
    snapshot = read_members(at, MEMBERS)
    assert [node.facts.names for node in snapshot.nodes] == [node_facts(rank, 2).names for rank in (0, 1)]
    assert snapshot.contested == ()
    if announced_late:
        late.join()
