"""The last step before the verdict: the error counters of all RDMA ports, read again to see what the run added."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, SCHEMA, Recount, Recounted, read_message
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.rdma.rdma_counters import read_again
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.hardware import PortCounters, RdmaCounters
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.context import TOOL_VERSION
from ncclcheck.run.lead import Member, Orders

_ANSWER_S = 1.0  # for the answer to arrive, beyond the time that the reading has


def recount(
    orders: Orders, store: Store, agents: tuple[Member, ...], snapshot: Snapshot, deadline: Deadline
) -> Snapshot:
    """The snapshot with a second reading of the counters of every node that has RDMA ports and still answers.

    Where nobody has any nothing is asked. A node that does not answer keeps its first reading, and says why.
    """
    with_ports = {node.host for node in snapshot.nodes if _has_ports(node.facts)}
    asked = [one for one in agents if one.host in with_ports]
    if not asked:
        return snapshot
    found: dict[int, bytes] = {}
    late = Missing("timeout", "no time was left to read the counters again")
    if deadline.left() > _ANSWER_S:
        key = orders.give(Recount())
        late = Missing("timeout", "the node did not read its counters again")
        found = gather_answers(
            store, [one.ticket for one in asked], key, deadline.within(timeouts.COUNTERS_AGAIN_S + _ANSWER_S)
        )
    readings = {one.host: _read(found.get(one.ticket), late) for one in asked}
    nodes = tuple(
        replace(node, facts=with_reading(node.facts, readings[node.host])) if node.host in readings else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def recount_here() -> bytes:
    """This node's part, as the answer to node 0."""
    return encode(Recounted(SCHEMA, TOOL_VERSION, read_again()))


def with_reading(facts: NodeFacts, reading: Fact[tuple[PortCounters, ...]]) -> NodeFacts:
    """The facts in which every port has what it counts now; a port that is gone says so."""
    counters = facts.rdma_counters
    if isinstance(counters, Missing):
        return facts
    gone = Missing("absent", "the port is not there any more")
    now = {} if isinstance(reading, Missing) else {(one.device, one.port): one.before for one in reading}
    ports = tuple(
        replace(one, after=reading if isinstance(reading, Missing) else now.get((one.device, one.port), gone))
        for one in counters.ports
    )
    return replace(facts, rdma_counters=RdmaCounters(ports))


def _has_ports(facts: NodeFacts) -> bool:
    return not isinstance(facts.rdma_counters, Missing) and bool(facts.rdma_counters.ports)


def _read(answer: bytes | None, late: Missing) -> Fact[tuple[PortCounters, ...]]:
    if answer is None:
        return late
    try:
        return read_message(answer, Recounted, FACTS_LIMIT_BYTES).ports
    except DecodeError as error:
        return Missing("error", str(error))
