"""The steps of a run as a node reads them: in turn, each checked first. A refused one is told, and stops nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, Finish, Order, OrdersRefused, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Refused
from ncclcheck.run.context import TOOL_VERSION
from ncclcheck.run.order_rules import MOST_OF_A_KIND, Bounds, name_of, read_order
from ncclcheck.run.probe_rules import Announcements
from ncclcheck.run.vouching import Vouch, believes_all

MOST_TOLD = 8  # refused orders of which a node tells; a stranger may write any number
_LONGEST_REASON = 300
_LONGEST_STEP = 40


class OrderReader:
    """Reads the steps in turn. State: the number of the next step, and what was refused so far."""

    def __init__(
        self, store: Store, bounds: Bounds, say: Callable[[str], None], vouch: Vouch = believes_all
    ) -> None:
        self._store, self._bounds, self._say, self._vouch = store, bounds, say, vouch
        self._announcements = Announcements(store)
        self._given: Counter[type[Order]] = Counter()
        self._next = 0
        self._told: list[tuple[str, str]] = []
        self._refused_data: bytes | None = None

    def next(self, deadline: Deadline) -> tuple[int, Order] | Missing:
        """Return the next order and its number as soon as it is there.

        Where the step was refused, node 0 may still write its own in its place, or go on to the one after it.
        """
        for _ in polls(deadline):
            steps = (self._next,) if self._refused_data is None else (self._next, self._next + 1)
            for number in steps:
                order = self._look(number)
                if self._store.lost is not None:
                    return self._lost(self._store.lost)
                if order is not None:
                    self._next, self._refused_data = number + 1, None
                    return number, order
        return self._lost(Missing("timeout", f"step/{self._next} did not come in time"))

    def _look(self, number: int) -> Order | None:
        """Return the order that stands there, where it is new and node 0 may have given it."""
        data = self._store.get_document(keys.step(number))
        if isinstance(data, Missing):
            if data.missing == "absent":
                return None
            data = data.detail.encode()  # no document: it is refused as one
        return None if data == self._refused_data else self._accepted(number, data)

    def _accepted(self, number: int, data: bytes) -> Order | None:
        try:
            order = read_order(data, self._bounds, self._announcements)
        except DecodeError as error:
            reason = str(error)[:_LONGEST_REASON]
        else:
            kind, most = type(order), MOST_OF_A_KIND.get(type(order), 1)
            reason = f"{name_of(order)}: given {most + 1} times, {most} are accepted"
            if self._given[kind] < most:
                reason = self._vouch(order)[:_LONGEST_REASON] if isinstance(order, Finish) else ""
            if not reason:
                self._given[kind] += 1
                return order
        if number == self._next:
            self._refused_data = data
        if len(self._told) < MOST_TOLD and (f"step {number}", reason) not in self._told:
            self._say(f"refused step {number}: {reason}")
            self._told.append((f"step {number}", reason))
            message = OrdersRefused(SCHEMA, TOOL_VERSION, tuple(self._told))
            self._store.set_document(keys.refused_orders(self._bounds.ticket), encode(message))
        return None

    def _lost(self, why: Missing) -> Missing:
        """Why no order came, with what was refused before."""
        if not self._told:
            return why
        step, reason = self._told[-1]
        return Missing(why.missing, f"{why.detail}; {step} was refused before: {reason}")


def refused_orders(store: Store, host_of: Mapping[int, str]) -> tuple[Refused, ...]:
    """Return what the nodes (ticket -> host) refused to do: somebody else than node 0 wrote those orders."""
    refused: list[Refused] = []
    for ticket, host in host_of.items():
        data = store.get_document(keys.refused_orders(ticket))
        if isinstance(data, Missing):
            continue
        try:
            told = read_message(data, OrdersRefused, SMALL_LIMIT_BYTES).orders
        except DecodeError as error:
            refused.append(Refused(host, "refused orders", str(error)))
            continue
        refused += [
            Refused(host, f"order {step[:_LONGEST_STEP]}", reason[:_LONGEST_REASON])
            for step, reason in told[:MOST_TOLD]
        ]
    return tuple(refused)
