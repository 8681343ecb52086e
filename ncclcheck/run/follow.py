"""A participant's side of a run: do what the coordinator orders, step by step, until it tells the verdict.

Orders are read in turn, each checked first. A refused one is told, and stops nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.messages import OWN_ORDERS, SCHEMA, TOOL_VERSION, pack
from ncclcheck.exchange.store import keys
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.run.pauses import PauseNotes
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.late import LONGEST_REASON, MOST_TOLD, OrdersRefused
from ncclcheck.run.steps.reach import ReachOrder
from ncclcheck.run.steps.sequence import read_order, step_of

AT_FIRST = "while the nodes joined"


class Lost(Struct, frozen=True):
    """Why node 0 was lost, and when: "during the benchmark"."""

    why: Missing
    when: str = AT_FIRST


def follow(participant: Participant) -> Finish | Lost:
    """Follow all orders; return the verdict, or how node 0 was lost. A further rank waits, but for its worker."""
    reader, when = OrderReader(participant), AT_FIRST
    pauses = PauseNotes(participant.store, participant.ticket)
    while True:
        received = reader.next(participant.context.deadline)
        if isinstance(received, Missing):
            return Lost(received, when)
        number, order = received
        if isinstance(order, Finish):
            return order
        if order == OWN_ORDERS:  # none of them is for this further rank
            continue
        if participant.local is None and str(participant.ticket) not in step_of(order).by_ranks(order):
            continue
        pauses.begin(step_of(order).name)
        answer = _answer(participant, order)
        pauses.tell()
        doing = step_of(order).doing
        if isinstance(answer, Missing):
            return Lost(answer, f"during {doing}")
        when = f"after {doing}"
        if answer is not None:
            failed = participant.store.set_document(keys.answer(number, participant.ticket), pack(answer))
            when = f"during {doing}" if failed is not None else when


def _answer(participant: Participant, order: Any) -> Any:
    """Do the order; return the answer to node 0, None where it needs none, Missing where it was lost meanwhile."""
    step = step_of(order)
    if participant.local is not None and not isinstance(order, ReachOrder):
        participant.node.nccl.close()  # once anything else is ordered, all probes have arrived
    return None if step.follow is None else step.follow(participant, order)


class OrderReader:
    """Reads the orders in turn. State: the number of the next one, and what was refused so far."""

    def __init__(self, participant: Participant) -> None:
        self._store, self._bounds, self._say = participant.store, participant.bounds, participant.context.say
        self._options = participant.context.options
        self._vouch, self._is_further_rank = participant.vouch, participant.local is None
        self._next = 0
        self._told: list[tuple[str, str]] = []
        self._refused_data: bytes | None = None
        self._given: Counter[str] = Counter()

    def next(self, deadline: Deadline) -> tuple[int, Any] | Missing:
        """Return the next order and its number as soon as it is there.

        Where the step was refused, node 0 may still write its own in its place, or go on to the one after it.
        """
        document: bytes | Missing | None = None
        if self._refused_data is None:
            document = self._store.wait_document(keys.step(self._next), deadline)
        for _ in polls(deadline):
            steps = (self._next,) if self._refused_data is None else (self._next, self._next + 1)
            for number in steps:
                order, document = self._look(number, document), None
                if self._store.lost is not None:
                    return self._lost(self._store.lost)
                if order is not None:
                    self._next, self._refused_data = number + 1, None
                    return number, order
        return self._lost(Missing("timeout", f"step/{self._next} did not come in time"))

    def _look(self, number: int, document: bytes | Missing | None) -> Any:
        """Return the order that stands there, where it is new and node 0 may have given it."""
        data = self._store.get_document(keys.step(number)) if document is None else document
        if isinstance(data, Missing):
            if data.missing in ("absent", "timeout") or self._store.lost is not None:
                return None
            data = data.detail.encode()  # no document: it is refused as one
        if data == OWN_ORDERS:
            own_order = self._store.get_document(keys.order(number, self._bounds.ticket))
            if isinstance(own_order, Missing):  # it is not for this process
                if self._is_further_rank:
                    return data
                self._next, self._refused_data = number, data  # an agent still looks at the next one
                return None
            data = own_order
        return None if data == self._refused_data else self._accepted(number, data)

    def _accepted(self, number: int, data: bytes) -> Any:
        try:
            order = read_order(data, self._bounds)
        except DecodeError as error:
            reason = str(error)[:LONGEST_REASON]
        else:
            step = step_of(order)
            most = step.most_given(self._options)
            reason = f"{step.name}: given {most + 1} times, and this node's own command asks for {most}"
            if self._given[step.name] < most:
                reason = self._vouch(order)[:LONGEST_REASON] if isinstance(order, Finish) else ""
            if not reason:
                self._given[step.name] += 1
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
        """Return why no order arrived, with the orders refused before."""
        if not self._told:
            return why
        step, reason = self._told[-1]
        return Missing(why.missing, f"{why.detail}; {step} was refused before: {reason}")
