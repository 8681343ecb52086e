"""Hellos that are none are refused; who comes late to a place that is taken is a clash of claims."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.contested import with_late_claims
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_hellos
from ncclcheck.exchange.messages import SCHEMA, Hello
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.snapshot import Snapshot
from tests.fact_builders import launch


def hello(node_rank: int, host: str, nnodes: int = 3) -> Hello:
    return Hello(SCHEMA, "0.1.0", host, launch(node_rank, nnodes))


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
    arrivals = gather_hellos(store, launch(0, 4), dict, Deadline(10), lambda _: None)
    assert sorted(hello.host for hello in arrivals.hellos.values()) == ["node1", "node2"]
    assert "schema version '99'" in arrivals.refused[3]
    assert arrivals.waited_s < 5
