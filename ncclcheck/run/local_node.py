"""What a node prepares by itself while it is still looking for the others: its facts and its listeners."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.probe.reachability import Listeners, Target
from ncclcheck.exchange.probe.ring import answer_latency
from ncclcheck.facts.nccl.nccl_library import inquire, library_of
from ncclcheck.facts.nccl.nccl_listener import NcclListener
from ncclcheck.facts.node_facts import collect
from ncclcheck.facts.section import FactsRequest
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import MasterPath, NodeFacts, Route
from ncclcheck.model.snapshot import Node
from ncclcheck.nccl.candidates import MOST_OF_GLOO, candidate_interfaces, gloo_addresses
from ncclcheck.run.context import Context
from ncclcheck.timeouts import FACTS_DEADLINE_S, LOCAL_FACTS_S


class LocalNode(Struct, frozen=True):
    """A node's facts, its listeners and where they are, the NCCL that was asked, and NCCL's own listener."""

    facts: NodeFacts
    listeners: Listeners
    targets: tuple[Target, ...]
    library: Fact[str]
    nccl: NcclListener


def prepare(context: Context) -> Future[LocalNode]:
    """Read the facts and open listeners, in the background; the library opens its own when it is asked.

    Call `release` in the end.
    """

    def work() -> LocalNode:
        nccl = NcclListener()
        request = FactsRequest(
            launch=context.launch,
            environment=context.environ,
            code_paths=context.options.code_paths,
            data_paths=context.options.data_paths,
            shared_paths=context.options.shared_paths,
            deadline_s=min(FACTS_DEADLINE_S, context.steps_deadline().left()),
            checkpoint_paths=context.options.checkpoint_paths,
            mesh=context.options.mesh,
            ask_with=nccl.inquire if context.launch.nnodes > 1 else inquire,
        )
        facts = collect(request)
        listeners = Listeners()
        answer_latency(listeners.channels)
        targets = listeners.open(_listened(facts)) if context.launch.nnodes > 1 else ()
        targets += _nccl_target(facts, targets, nccl)
        return LocalNode(facts, listeners, targets, library_of(facts.nccl, context.environ), nccl)

    return in_background(work, "facts")


def _listened(facts: NodeFacts) -> tuple[tuple[str, str], ...]:
    """Return where NCCL could listen, and where Gloo does, which may be another address of the same interface."""
    candidates = candidate_interfaces(facts)
    known = {address for _, address in candidates}
    further = [place for place in gloo_addresses(facts) if place[1] not in known]
    return (*candidates, *further[:MOST_OF_GLOO])


def release(prepared: Future[LocalNode]) -> None:
    """Close NCCL's listener and its process, as soon as what `prepare` does has ended."""

    def close(ended: Future[LocalNode]) -> None:
        if ended.exception() is None:
            ended.result().nccl.close()

    prepared.add_done_callback(close)


def _nccl_target(facts: NodeFacts, targets: Sequence[Target], nccl: NcclListener) -> tuple[Target, ...]:
    listening = nccl.listening()
    if listening is None or isinstance(facts.nccl, Missing) or isinstance(facts.nccl.asked, Missing):
        return ()
    known = facts.nccl.asked.interface or next(
        (target.interface for target in targets if target.address == listening.address), ""
    )
    return (Target(known, listening.address, listening.port, "nccl", listening.room),)


def local_node(context: Context, prepared: Future[LocalNode]) -> LocalNode:
    """Return what `prepare` made; where it did not end in time every section is Missing, and says so."""
    try:
        return prepared.result(timeout=context.deadline.left(LOCAL_FACTS_S))
    except FutureTimeout:
        late = Missing("timeout", f"the facts were not read within {LOCAL_FACTS_S:.0f} s")
        sections = {name: late for name in NodeFacts.__struct_fields__ if name not in ("launch", "master")}
        facts = NodeFacts(launch=context.launch, **sections)
        return LocalNode(facts, Listeners(), (), late, NcclListener())


def own_node(context: Context, local: LocalNode) -> Node:
    """Return this node as it appears in a snapshot."""
    return Node(context.host, context.launch.node_rank, local.facts)


def with_master(facts: NodeFacts, path: MasterPath) -> NodeFacts:
    """Return the facts with the node's path to the master and the route it takes."""
    route = Route(path.name, "master", path.source_address, path.interface)
    return replace(facts, master=path, routes=(route,))
