"""The step that proves the name by which torch's c10d rendezvous will make every worker call rank 0's node."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, Resolve, Resolved, read_message
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import NameView, Node, Snapshot, WorkersAddress
from ncclcheck.run.lead import Member, Orders

RESOLVE_S = 5.0
_ANSWER_S = 2.0  # for the answer to arrive, beyond the time that the asking has


def resolve_workers_address(
    orders: Orders, store: Store, agents: tuple[Member, ...], snapshot: Snapshot, deadline: Deadline
) -> Snapshot:
    """The snapshot with what the workers' MASTER_ADDR leads to on every node, where c10d will choose it."""
    if not any(one.launch.rendezvous == "c10d" for one in agents) or len(agents) <= 1:
        return snapshot
    first = first_by_name(snapshot)
    if isinstance(first, Missing):
        return replace(snapshot, workers_address=first)
    name, host = first
    ticket = next(agent.ticket for agent in agents if agent.host == host)
    key = orders.give(Resolve(name, ticket, deadline.left(RESOLVE_S)))
    found = gather_answers(store, [one.ticket for one in agents], key, deadline.within(RESOLVE_S + _ANSWER_S))
    views = tuple(NameView(one.host, _told(found.get(one.ticket))) for one in agents)
    return replace(snapshot, workers_address=WorkersAddress(name, host, views))


def first_by_name(snapshot: Snapshot) -> tuple[str, str] | Missing:
    """Name and host of the node that gets rank 0: torch sorts the nodes by their --local-addr or FQDN.

    (torch/distributed/elastic/rendezvous/dynamic_rendezvous.py: _NodeDesc, _mark_rendezvous_complete; the workers'
    MASTER_ADDR is that name: rendezvous/api.py, RendezvousStoreInfo.build.)
    """
    names: list[tuple[str, str]] = []
    for node in snapshot.nodes:
        name = _name_of(node)
        if isinstance(name, Missing):
            return Missing(name.missing, f"how torch calls {node.host}: {name.detail}")
        names.append((name, node.host))
    return min(names) if names else Missing("absent", "no node reported")


def _name_of(node: Node) -> Fact[str]:
    launch, names = node.facts.launch, node.facts.names
    if not isinstance(launch, Missing) and launch.local_addr:
        return launch.local_addr
    return names if isinstance(names, Missing) else names.fqdn


def _told(answer: bytes | None) -> Fact[tuple[str, ...]]:
    if answer is None:
        return Missing("timeout", "this node did not tell")
    try:
        return read_message(answer, Resolved, SMALL_LIMIT_BYTES).addresses
    except DecodeError as error:
        return Missing("error", str(error))
