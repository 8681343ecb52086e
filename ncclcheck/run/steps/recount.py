"""Recount: the nodes read the error counters of their RDMA ports again, to see what the run added."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.roster import Member
from ncclcheck.facts.rdma.rdma_counters import read_again, with_reading
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import PortCounters
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.session import Session, ask
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.timeouts import COUNTERS_AGAIN_S, SHORT_ANSWER_S

_NO_TIME = Missing("timeout", "no time was left to read the counters again")
_SILENCE = Missing("timeout", "the node did not read its counters again")


class RecountOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="recount"):
    """Read the error counters of the RDMA ports again."""


class Recounted(Struct, frozen=True, forbid_unknown_fields=True):
    """The readings, each as the first of its port."""

    schema_version: str
    tool_version: str
    ports: Fact[tuple[PortCounters, ...]]


def _asked(session: Session) -> tuple[Member, ...]:
    """Return the agents of the nodes that have RDMA ports; without any the step does not apply."""
    with_ports = {node.host for node, counters in session.snapshot.known("rdma_counters") if counters.ports}
    return tuple(agent for agent in session.agents if agent.host in with_ports)


def _lead(session: Session) -> Snapshot:
    """Ask the nodes with RDMA ports. A node that does not answer keeps its first reading, and says why."""
    asked, snapshot = _asked(session), session.snapshot
    readings: dict[str, Fact[tuple[PortCounters, ...]]] = {agent.host: _NO_TIME for agent in asked}
    if session.deadline.left() > SHORT_ANSWER_S:
        answers = ask(session, RECOUNT, RecountOrder(), asked)
        for agent in asked:
            answer = answers.of(agent, _SILENCE)
            readings[agent.host] = answer if isinstance(answer, Missing) else answer.ports
    nodes = tuple(
        replace(node, facts=with_reading(node.facts, readings[node.host])) if node.host in readings else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def follow_recount(_participant: Participant | None, _order: RecountOrder) -> Recounted:
    """Read the counters of this node's ports."""
    return Recounted(SCHEMA, TOOL_VERSION, read_again())


RECOUNT = Step(
    "recount",
    COUNTERS_AGAIN_S + SHORT_ANSWER_S,
    applies=lambda session: bool(_asked(session)),
    lead=_lead,
    order=RecountOrder,
    answer=Recounted,
    follow=follow_recount,
)
