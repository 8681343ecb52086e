"""Reports of nodes are read strictly: what is no report is refused, and its node is silent."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.node_report import NOTHING_COMMON, report_message
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.steps.facts import read_members
from tests.bench.nodes.benches import session
from tests.fact_builders import launch, node_facts


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
    members = (Member(101, launch(0, 2), "node1"), Member(102, launch(1, 2), "node2"))
    snapshot = read_members(session(store, Snapshot(nodes=()), 20), members)
    assert [node.host for node in snapshot.nodes] == ["node1"]
    (refused,) = snapshot.refused
    assert refused.host == "node2"
    assert reason in refused.reason
    assert [silent.host for silent in snapshot.silent] == ["node2"]
