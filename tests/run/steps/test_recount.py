"""The second reading of the RDMA counters, ordered over a real store."""

from __future__ import annotations

import threading
import time

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import LinkCounters, PortCounters, RdmaCounters
from ncclcheck.model.snapshot import Silent, Snapshot
from ncclcheck.run.steps.recount import RECOUNT, Recounted, RecountOrder, follow_recount
from tests.bench.nodes.benches import session
from tests.builders import cluster, node, with_facts
from tests.fact_builders import host_of, launch, some
from tests.hardware_builders import NO_ERRORS, ib_ports, rdma_cluster

GROWN: dict[str, Fact[int]] = {**NO_ERRORS, "symbol_error": 5}
AGENTS = tuple(Member(rank + 1, launch(rank, 2), host_of(rank)) for rank in range(2))


def once_read() -> Snapshot:
    """Two nodes whose counters were read once, with one difference to the second reading."""
    once = RdmaCounters(tuple(PortCounters(port.device, port.port, NO_ERRORS) for port in ib_ports()))
    return with_facts(with_facts(rdma_cluster(2), "node01", rdma_counters=once), "node02", rdma_counters=once)


def reading(counts: dict[str, Fact[int]], ports: int = 8) -> bytes:
    told = tuple(PortCounters(f"mlx5_{rail}", 1, counts) for rail in range(ports))
    return encode(Recounted(SCHEMA, "0", told))


def recounted(store: Store, snapshot: Snapshot, answers: dict[int, bytes], seconds: float = 20.0) -> Snapshot:
    """What node 0 has after those tickets answered so."""

    def answer() -> None:
        store.wait_document("step/0", Deadline(20))
        for ticket, data in answers.items():
            store.set_document(f"answer/0/{ticket}", data)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return RECOUNT.lead(session(store, snapshot, seconds, AGENTS))


def after(snapshot: Snapshot, host: str, place: int = 0) -> object:
    return some(node(snapshot, host).facts.rdma_counters).ports[place].after


def test_every_port_gets_its_second_reading(store: Store) -> None:
    found = recounted(store, once_read(), {1: reading(NO_ERRORS), 2: reading(GROWN)})
    assert after(found, "node01") == NO_ERRORS
    assert after(found, "node02", 7) == GROWN


def test_a_port_that_is_gone_and_a_node_that_talks_nonsense_say_so(store: Store) -> None:
    found = recounted(store, once_read(), {1: reading(NO_ERRORS, ports=7), 2: b"{}"})
    assert after(found, "node01", 7) == Missing("absent", "the port is not there any more")
    wrong = after(found, "node02")
    assert isinstance(wrong, Missing)
    assert wrong.missing == "error"


@pytest.mark.slow
def test_a_node_that_says_nothing_is_late(store: Store) -> None:
    found = recounted(store, once_read(), {1: reading(NO_ERRORS)}, seconds=1.5)
    assert after(found, "node01") == NO_ERRORS
    assert after(found, "node02") == Missing("timeout", "the node did not read its counters again")


def test_at_the_very_deadline_every_node_is_still_asked_whether_it_is_there(store: Store) -> None:
    late = recounted(store, once_read(), {1: reading(GROWN)}, seconds=0.5)
    assert after(late, "node01") == GROWN
    assert after(late, "node02") == Missing("timeout", "no time was left to read the counters again")
    assert [(silent.host, silent.phase) for silent in late.silent] == [("node02", "end")]


def test_where_so_many_cannot_answer_in_the_time_that_is_left_nobody_is_called_silent(store: Store) -> None:
    agents = tuple(Member(rank + 1, launch(rank, 2000), host_of(rank)) for rank in range(2000))
    late = RECOUNT.lead(session(store, once_read(), 0.5, agents))
    assert after(late, "node01") == Missing("timeout", "no time was left to read the counters again")
    assert late.silent == ()


def test_one_node_without_ports_is_not_asked(store: Store) -> None:
    none = with_facts(once_read(), "node01", rdma_counters=RdmaCounters(()))
    none = replace(none, nodes=none.nodes[:1])
    assert not RECOUNT.applies(session(store, none, 20, AGENTS[:1]))


@pytest.mark.slow
def test_a_node_that_ended_after_its_last_measurement_is_silent(store: Store) -> None:
    found = recounted(store, cluster(2), {1: reading(NO_ERRORS, ports=0)}, seconds=1.5)
    assert [(silent.host, silent.phase) for silent in found.silent] == [("node02", "end")]


def test_who_was_silent_before_is_not_waited_for(store: Store) -> None:
    before = replace(cluster(2), silent=(Silent("node02", 1, "probes", 5.0),))
    assert recounted(store, before, {1: reading(NO_ERRORS, ports=0)}).silent == before.silent


def test_a_node_that_is_known_to_hang_is_silent_and_not_waited_for(store: Store) -> None:
    led = session(store, cluster(2), 20.0, AGENTS)
    led.state.gone = frozenset({2})
    answered = threading.Thread(
        target=lambda: (
            store.wait_document("step/0", Deadline(20)),
            store.set_document("answer/0/1", reading(NO_ERRORS, 0)),
        ),
        daemon=True,
    )
    answered.start()
    began = time.monotonic()
    assert [silent.host for silent in RECOUNT.lead(led).silent] == ["node02"]
    assert time.monotonic() - began < RECOUNT.timeout_s / 2


def test_this_machine_answers_in_the_form_that_is_read() -> None:
    assert follow_recount(None, RecountOrder()).schema_version == SCHEMA


def test_a_link_that_flaps_after_the_last_measurement_is_seen(store: Store) -> None:
    def links(changes: int) -> tuple[LinkCounters, ...]:
        return (LinkCounters("eth0", {"carrier_changes": changes}),)

    before = cluster(2)
    for host in ("node01", "node02"):
        before = with_facts(before, host, link_counters=links(2))
    answers = {
        ticket: encode(Recounted(SCHEMA, "0", Missing("absent"), links(changes)))
        for ticket, changes in ((1, 2), (2, 6))
    }
    found = recounted(store, before, answers)
    assert [some(node.facts.link_counters)[0].after for node in found.nodes] == [
        {"carrier_changes": 2},
        {"carrier_changes": 6},
    ]
