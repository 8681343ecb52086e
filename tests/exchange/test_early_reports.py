"""Reports are decoded as they arrive, and say what they say when read later."""

from __future__ import annotations

import threading

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.early_reports import EarlyReports
from ncclcheck.exchange.node_report import NOTHING_COMMON, ReportReader, report_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import TOGETHER, Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.errors import DecodeError
from tests.fact_builders import node_facts


def message(rank: int) -> bytes:
    return report_message(node_facts(rank, 2), (), NOTHING_COMMON)


@pytest.fixture
def store() -> Store:
    return within_process(MemoryBackend(), 0)


@pytest.fixture
def reports() -> EarlyReports:
    return EarlyReports(ReportReader(NOTHING_COMMON))


def test_whole_groups_are_read_early_and_the_rest_when_all_came(store: Store, reports: EarlyReports) -> None:
    tickets = range(1, TOGETHER + 3)
    for ticket in tickets:
        store.set_document(keys.facts(ticket), message(ticket % 2))
    reports.look(store, tickets)
    assert set(reports.documents) == set(range(1, TOGETHER + 1))
    found = reports.gather(store, tickets, Deadline(5))
    assert found == {ticket: message(ticket % 2) for ticket in tickets}
    for ticket in tickets:
        assert reports.read(ticket, found[ticket]) == (node_facts(ticket % 2, 2), ())


def test_of_few_nodes_nothing_is_asked_early(reports: EarlyReports) -> None:
    reports.look(None, range(TOGETHER - 1))  # type: ignore[arg-type]  # a store that is asked would raise
    assert not reports.documents


def test_what_is_no_report_is_refused_when_it_is_read(store: Store, reports: EarlyReports) -> None:
    store.set_document(keys.facts(1), b"no report")
    found = reports.gather(store, [1, 2], Deadline(0.1))
    assert found == {1: b"no report"}
    for _ in range(2):
        with pytest.raises(DecodeError):
            reports.read(1, found[1])


def test_another_document_than_the_one_that_came_early_is_read_itself(reports: EarlyReports) -> None:
    reports.take(1, message(0))
    assert reports.read(1, message(1)) == (node_facts(1, 2), ())


def test_a_report_is_read_again_until_it_is_the_one_that_was_announced(
    store: Store, reports: EarlyReports
) -> None:
    own, digest = message(1), digest_of(message(1))
    reports.take(1, message(0))
    store.set_document(keys.facts(1), message(0))
    assert reports.again(store, 1, digest, Deadline(0.1)) is None
    later = threading.Timer(0.1, store.set_document, (keys.facts(1), own))
    later.start()
    assert reports.again(store, 1, digest, Deadline(30)) == own
    assert reports.documents[1] == own
    later.join()
