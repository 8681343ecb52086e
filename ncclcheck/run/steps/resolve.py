"""Resolve: do all nodes resolve the name by which torch's c10d rendezvous makes every worker call rank 0's node."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION
from ncclcheck.exchange.order_limits import seconds_faults
from ncclcheck.facts.network.names import resolve
from ncclcheck.launch.c10d import first_by_name
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import NameView, Snapshot, WorkersAddress
from ncclcheck.run.session import Session, ask
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import ANSWER_S, RESOLVE_S

_LONGEST_NAME = 255
_SILENCE = Missing("timeout", "this node did not tell")


class ResolveOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="resolve"):
    """Say which addresses this name of the member with this ticket has."""

    name: str
    ticket: int
    deadline_s: float


class Resolved(Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses of the name on this node."""

    schema_version: str
    tool_version: str
    addresses: Fact[tuple[str, ...]]


def _applies(session: Session) -> bool:
    """Return whether c10d will choose the workers' MASTER_ADDR."""
    return session.probes_network and any(agent.launch.rendezvous == "c10d" for agent in session.agents)


def _lead(session: Session) -> Snapshot:
    snapshot, agents = session.snapshot, session.agents
    first = first_by_name(snapshot)
    if isinstance(first, Missing):
        return replace(snapshot, workers_address=first)
    name, host = first
    ticket = next(agent.ticket for agent in agents if agent.host == host)
    answers = ask(session, RESOLVE, ResolveOrder(name, ticket, session.deadline.left(RESOLVE_S)), agents)
    answer_by_host = {agent.host: answers.of(agent, _SILENCE) for agent in agents}
    views = tuple(
        NameView(host, answer if isinstance(answer, Missing) else answer.addresses)
        for host, answer in answer_by_host.items()
    )
    return replace(snapshot, workers_address=WorkersAddress(name, host, views))


def _follow(_: Participant, order: ResolveOrder) -> Resolved:
    return Resolved(SCHEMA, TOOL_VERSION, resolve(order.name, order.deadline_s))


def _faults(order: ResolveOrder, bounds: Bounds) -> Iterator[str]:
    if not bounds.most_ranks:
        return  # a further rank probes no peers
    yield from seconds_faults(order.deadline_s, timeouts.LONGEST_CALLS_S)
    announced = bounds.announced(order.ticket)
    if announced is None or order.name not in announced.names or len(order.name) > _LONGEST_NAME:
        yield f"no member of this run is called {order.name[:60]!a}"


RESOLVE = Step(
    "resolve",
    RESOLVE_S + ANSWER_S,
    applies=_applies,
    lead=_lead,
    order=ResolveOrder,
    answer=Resolved,
    follow=_follow,
    doing="the look-up of names",
    faults=_faults,
    limit_bytes=SMALL_LIMIT_BYTES,
)
