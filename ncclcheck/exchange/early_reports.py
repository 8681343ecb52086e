"""The reports of nodes, decoded as they arrive: node 0 has little else to do while it waits for thousands."""

from __future__ import annotations

import time
from collections.abc import Collection

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.node_report import ReportReader
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import TOGETHER, Store
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts

_RESTS = 4  # a look at thousands of keys is followed by a pause that is so many times as long


class EarlyReports:
    """State: the documents that arrived, by ticket, what each of them says, and when (monotonic) to look again."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader
        self.documents: dict[int, bytes] = {}
        self._told: dict[int, tuple[NodeFacts, tuple[Target, ...]] | DecodeError] = {}
        self._rests_until = 0.0

    def look(self, store: Store, tickets: Collection[int]) -> None:
        """Read the reports of whole groups of these tickets that are there. Of few nodes that would gain nothing."""
        started = time.monotonic()
        waiting = {keys.facts(ticket): ticket for ticket in tickets if ticket not in self.documents}
        whole = len(waiting) // TOGETHER * TOGETHER
        if not whole or started < self._rests_until:
            return
        found = store.get_documents(tuple(waiting)[:whole], thorough=False)
        asked_s = time.monotonic() - started
        for key, data in found.items():
            self.take(waiting[key], data)
        self._rests_until = time.monotonic() + _RESTS * asked_s

    def gather(self, store: Store, tickets: Collection[int], deadline: Deadline) -> dict[int, bytes]:
        """Return the documents of these tickets that are there by the deadline."""
        late = [ticket for ticket in tickets if ticket not in self.documents]
        gather_answers(store, late, keys.facts, deadline, read=self.take)
        return {ticket: self.documents[ticket] for ticket in tickets if ticket in self.documents}

    def again(self, store: Store, ticket: int, digest: str, deadline: Deadline) -> bytes | None:
        """Return the document of a ticket that has this digest, as soon as it is there; None if it is not in time."""
        for _ in polls(deadline):
            data = store.get_document(keys.facts(ticket))
            if not isinstance(data, Missing) and digest_of(data) == digest:
                self.take(ticket, data)
                return data
            if store.lost is not None:
                break
        return None

    def take(self, ticket: int, data: bytes) -> None:
        """Keep the document of a ticket, and what it says."""
        self.documents[ticket] = data
        try:
            self._told[ticket] = self._reader.read(data)
        except DecodeError as error:
            self._told[ticket] = error

    def read(self, ticket: int, data: bytes) -> tuple[NodeFacts, tuple[Target, ...]]:
        """Return a node's facts and where it listens. Raises DecodeError for what is no report."""
        if self.documents.get(ticket) != data:
            self.take(ticket, data)
        report = self._told[ticket]
        if isinstance(report, DecodeError):
            raise report
        return report
