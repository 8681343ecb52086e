"""A participant's side of a run: do what the coordinator orders, step by step, until it tells the verdict."""

from __future__ import annotations

from typing import Any

from ncclcheck.exchange.store import keys
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.run.order_reader import OrderReader
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.reach import ReachOrder
from ncclcheck.run.steps.sequence import step_of


def follow(participant: Participant) -> Finish | Missing:
    """Follow all orders; return the verdict, or why node 0 was lost. A further rank of a node only waits."""
    reader = OrderReader(participant)
    while True:
        received = reader.next(participant.context.deadline)
        if isinstance(received, Missing):
            return received
        number, order = received
        if isinstance(order, Finish):
            return order
        if participant.local is None:
            continue
        answer = _answer(participant, order)
        if isinstance(answer, Missing):
            return answer
        if answer is not None:
            participant.store.set_document(keys.answer(number, participant.ticket), encode(answer))


def _answer(participant: Participant, order: Any) -> Any:
    """Do the order; return the answer to node 0, None where it needs none, Missing where it was lost meanwhile."""
    step = step_of(order)
    if not isinstance(order, ReachOrder):
        participant.node.nccl.close()  # once anything else is ordered, all probes have arrived
    return None if step.follow is None else step.follow(participant, order)
