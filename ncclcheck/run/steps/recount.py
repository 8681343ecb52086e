"""Recount: every node answers a last time, and reads the counters of its links and RDMA ports again.

So a node whose process ended after its last measurement is silent, and no verdict counts it as checked to the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.roster import Member
from ncclcheck.facts.network.link_counters import read_links_again, with_counts
from ncclcheck.facts.rdma.rdma_counters import read_again, with_reading
from ncclcheck.model.fact import NOT_READ, Fact, Missing
from ncclcheck.model.hardware import LinkCounters, PortCounters
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.session import Session, ask, with_silent
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.timeouts import ANSWER_OF_EACH_S, ANSWER_S, COUNTERS_AGAIN_S, SHORT_ANSWER_S

_NO_TIME = Missing("timeout", "no time was left to read the counters again")
_SILENCE = Missing("timeout", "the node did not read its counters again")


class RecountOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="recount"):
    """Say that you are still there, and read the counters of the links and RDMA ports again."""


class Recounted(Struct, frozen=True, forbid_unknown_fields=True):
    """The readings, each as the first of its port or interface."""

    schema_version: str
    tool_version: str
    ports: Fact[tuple[PortCounters, ...]]
    links: Fact[tuple[LinkCounters, ...]] = NOT_READ


def _asked(session: Session) -> tuple[Member, ...]:
    """Return the agents of all nodes that answered so far."""
    silent = {silent.host for silent in session.snapshot.silent}
    return tuple(agent for agent in session.agents if agent.host not in silent)


def _lead(session: Session) -> Snapshot:
    """Ask all that do not hang. A node with RDMA ports that does not answer keeps its first reading, and says why."""
    snapshot, asked = session.snapshot, _asked(session)
    with_ports = {node.host for node, counters in snapshot.known("rdma_counters") if counters.ports}
    is_late = session.deadline.left() <= SHORT_ANSWER_S
    silence = _NO_TIME if is_late else _SILENCE
    if is_late:  # of what is kept for the verdict, one third; thousands could not answer in it
        session = replace(
            session, deadline=Deadline(min(SHORT_ANSWER_S, session.context.deadline.left() / 3))
        )
        asked = () if ANSWER_OF_EACH_S * len(asked) > session.deadline.left() else asked
    there = tuple(agent for agent in asked if agent.ticket not in session.state.gone)
    answers = ask(session, RECOUNT, RecountOrder(), there)
    readings: dict[str, Fact[tuple[PortCounters, ...]]] = dict.fromkeys(with_ports, silence)
    for agent in asked:
        answer = answers.of(agent, silence)
        readings[agent.host] = answer if isinstance(answer, Missing) else answer.ports
    counted = {
        agent.host: answers.accepted[agent.ticket].links
        for agent in asked
        if agent.ticket in answers.accepted
    }
    snapshot = _with_readings(snapshot, {host: readings[host] for host in with_ports})
    snapshot = replace(snapshot, nodes=tuple(with_counts(node, counted) for node in snapshot.nodes))
    return with_silent(snapshot, answers.silent(asked, "end"))


def _with_readings(snapshot: Snapshot, readings: Mapping[str, Fact[tuple[PortCounters, ...]]]) -> Snapshot:
    if not readings:
        return snapshot
    nodes = tuple(
        replace(node, facts=with_reading(node.facts, readings[node.host])) if node.host in readings else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def follow_recount(_participant: Participant | None, _order: RecountOrder) -> Recounted:
    """Read the counters of this node."""
    return Recounted(SCHEMA, TOOL_VERSION, read_again(), read_links_again())


def _applies(session: Session) -> bool:
    has_ports = any(counters.ports for _, counters in session.snapshot.known("rdma_counters"))
    return has_ports or len(session.agents) > 1


RECOUNT = Step(
    "recount",
    2 * COUNTERS_AGAIN_S + ANSWER_S,
    applies=_applies,
    lead=_lead,
    order=RecountOrder,
    answer=Recounted,
    follow=follow_recount,
    doing="the last count of the nodes",
)
