"""A run as its coordinator leads it: what a step has at hand, and how it asks the nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_read
from ncclcheck.exchange.messages import OWN_ORDERS, SCHEMA, TOOL_VERSION, pack, read_message
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Knock, Silent, Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.base import AnswerT, OrderT, Step
from ncclcheck.timeouts import ANSWER_OF_EACH_S

T = TypeVar("T")


class Joining(Struct, frozen=True):
    """How the coordinator learns who takes part, beside the hellos in the store.

    `knocks`: what nodes that cannot join told it. `given_up`: node ranks that will not come, for another reason.
    `names`: what nodes that did not come call themselves. `when_lost`: what there is to report where the store is lost
    while nodes join; None: go on with the nodes that joined.
    """

    timeout_s: float
    knocks: Callable[[], dict[int, Knock]] = dict
    given_up: Callable[[], Collection[int]] = tuple
    names: Callable[[], Mapping[int, str]] = dict
    when_lost: Callable[[Missing], Snapshot] | None = None


class Session(Struct, frozen=True):
    """A run as its coordinator leads it; `state` is what changes."""

    context: Context
    store: Store
    state: RunState
    deadline: Deadline  # when the last step has ended
    joining: Joining

    @property
    def snapshot(self) -> Snapshot:
        """Return what is known so far."""
        return self.state.snapshot

    @property
    def agents(self) -> tuple[Member, ...]:
        """Return the agents of all nodes that reported."""
        return self.state.agents

    @property
    def probes_network(self) -> bool:
        """Return whether the network between the nodes is to be checked, and there is one."""
        return self.context.options.preflight and len(self.agents) > 1

    @property
    def measures_network(self) -> bool:
        """Return whether it is to be measured by all at once: `isolate`, `matrix` and `soak` measure it themselves."""
        return self.probes_network and self.context.options.command not in ("isolate", "matrix", "soak")


class OrderMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """What every agent does next, as the coordinator writes it; `steps.sequence.read_order` reads it."""

    schema_version: str
    tool_version: str
    order: Any


class Answers(Struct, Generic[T], frozen=True):
    """What the nodes answered, by ticket; why other answers were refused; how long they were waited for."""

    accepted: dict[int, T]
    refused: dict[int, str]
    waited_s: float

    def of(self, agent: Member, silence: Missing) -> Fact[T]:
        """Return an agent's answer; Missing where it was refused, `silence` where there is none."""
        if agent.ticket in self.refused:
            return Missing("error", self.refused[agent.ticket])
        return self.accepted.get(agent.ticket, silence)

    def silent(
        self, agents: Collection[Member], phase: Literal["probes", "confirm", "end"]
    ) -> tuple[Silent, ...]:
        """Return the nodes without an answer that can be used."""
        return tuple(
            Silent(agent.host, agent.launch.node_rank, phase, self.waited_s)
            for agent in agents
            if agent.ticket not in self.accepted
        )


def ask(
    session: Session,
    step: Step[OrderT, AnswerT],
    order: OrderT | Mapping[int, OrderT],
    agents: Collection[Member],
) -> Answers[AnswerT]:
    """Give the order to all nodes, or each its own; return what those agents answer within the step's time."""
    assert step.answer is not None, step.name  # noqa: S101
    started = time.monotonic()
    key = broadcast_order(session, order)
    tickets = [agent.ticket for agent in agents]
    patience_s = step.timeout_s + ANSWER_OF_EACH_S * len(tickets)
    read = partial(read_message, kind=step.answer, limit_bytes=step.limit_bytes)
    accepted, refused = gather_read(
        session.store, tickets, key, session.deadline.within(patience_s), read=read
    )
    return Answers(accepted, refused, round(time.monotonic() - started, 1))


def broadcast_order(session: Session, order: Any) -> Callable[[int], str]:
    """Give the next order to all nodes, or one of its own to each ticket of a mapping, and nothing to the others.

    Return the key under which a ticket's answer to it will stand.
    """
    number = session.state.orders_given
    session.state.orders_given += 1
    if isinstance(order, Mapping):
        documents = {keys.order(number, ticket): _message(part) for ticket, part in order.items()}
        session.store.set_documents(documents)
    session.store.set_document(
        keys.step(number), OWN_ORDERS if isinstance(order, Mapping) else _message(order)
    )
    return lambda ticket: keys.answer(number, ticket)


def _message(order: Any) -> bytes:
    return pack(OrderMessage(SCHEMA, TOOL_VERSION, order))


def with_silent(snapshot: Snapshot, silent: Collection[Silent]) -> Snapshot:
    """Return the snapshot with these nodes silent, too."""
    return replace(snapshot, silent=(*snapshot.silent, *silent))
