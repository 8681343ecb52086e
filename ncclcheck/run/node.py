"""One node's side of a run: its facts, its listeners, and the steps that node 0 orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import (
    FACTS_LIMIT_BYTES,
    SCHEMA,
    Bench,
    Compare,
    Confirm,
    Confirmed,
    Finish,
    Hello,
    Measure,
    Probed,
    RankReport,
    Reach,
    Recount,
    Report,
    Resolve,
    Resolved,
    Share,
)
from ncclcheck.exchange.probe.reachability import Listeners, Peer, ProbeGreeting, Target, probe_peers
from ncclcheck.exchange.probe.ring import answer_latency
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.collect import collect
from ncclcheck.facts.kept_environment import read_environment
from ncclcheck.facts.nccl.nccl_library import ask, find_library, inquire
from ncclcheck.facts.nccl.nccl_listener import NcclListener
from ncclcheck.facts.network.names import resolve
from ncclcheck.facts.network.routes import source_for
from ncclcheck.facts.section import FactsRequest
from ncclcheck.measure.links.schedule import ALL_PAIRS_UP_TO
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, MasterPath, NcclAnswer, NodeFacts, Route
from ncclcheck.model.launch import NOT_RANKED, Launch
from ncclcheck.model.snapshot import Node
from ncclcheck.nccl.prediction import candidate_interfaces
from ncclcheck.nccl.settable import first_refusal
from ncclcheck.run.context import TOOL_VERSION, Context, in_background
from ncclcheck.run.local_bench import run_local_bench
from ncclcheck.run.measuring import measure_here
from ncclcheck.run.order_reader import OrderReader
from ncclcheck.run.order_rules import Bounds, bounds_of
from ncclcheck.run.probe_rules import announce_self
from ncclcheck.run.recounting import recount_here
from ncclcheck.run.sharing import share_here
from ncclcheck.run.turns_bridge import bridge_turns
from ncclcheck.run.vouching import Vouch, believes_all

FACTS_S = 12.0


class LocalSide(Struct, frozen=True):
    """What a node prepares by itself, while it is still looking for the others."""

    facts: NodeFacts
    listeners: Listeners
    targets: tuple[Target, ...]
    library: Fact[str]
    nccl: NcclListener


def prepare(context: Context) -> Future[LocalSide]:
    """Facts read and listeners opened, in the background; among them NCCL's own, which the library opened when asked.

    `release` must be called in the end.
    """

    def work() -> LocalSide:
        nccl = NcclListener()
        request = FactsRequest(
            launch=context.launch,
            environment=context.environ,
            code_paths=context.options.code_paths,
            data_paths=context.options.data_paths,
            shared_paths=context.options.shared_paths,
            ask_with=nccl.inquire if context.launch.nnodes > 1 else inquire,
        )
        facts = collect(request)
        listeners = Listeners()
        answer_latency(listeners.channels)
        targets = listeners.open(candidate_interfaces(facts)) if context.launch.nnodes > 1 else ()
        targets += _nccl_target(facts, targets, nccl)
        return LocalSide(facts, listeners, targets, _library(facts, context.environ), nccl)

    return in_background(work, "facts")


def release(prepared: Future[LocalSide]) -> None:
    """NCCL's listener and its process are gone, or go as soon as what `prepare` does has ended."""

    def close(ended: Future[LocalSide]) -> None:
        if ended.exception() is None:
            ended.result().nccl.close()

    prepared.add_done_callback(close)


def _nccl_target(facts: NodeFacts, own: Sequence[Target], nccl: NcclListener) -> tuple[Target, ...]:
    listening = nccl.listening()
    if listening is None or isinstance(facts.nccl, Missing) or isinstance(facts.nccl.asked, Missing):
        return ()
    known = facts.nccl.asked.interface or next(
        (target.interface for target in own if target.address == listening.address), ""
    )
    return (Target(known, listening.address, listening.port, "nccl", listening.room),)


def _library(facts: NodeFacts, environ: Mapping[str, str]) -> Fact[str]:
    """The library that was asked, to be asked again."""
    if isinstance(facts.nccl, Missing) or isinstance(facts.nccl.libraries, Missing):
        return find_library(environ)
    if facts.nccl.libraries:
        return facts.nccl.libraries[0].path
    return facts.nccl.asked if isinstance(facts.nccl.asked, Missing) else facts.nccl.asked.library


def local_side(context: Context, prepared: Future[LocalSide]) -> LocalSide:
    """What `prepare` made; where it did not end in time every section is Missing, and says so."""
    try:
        return prepared.result(timeout=context.deadline.left(FACTS_S))
    except FutureTimeout:
        late = Missing("timeout", f"the facts were not read within {FACTS_S:.0f} s")
        sections = {name: late for name in NodeFacts.__struct_fields__ if name not in ("launch", "master")}
        facts = NodeFacts(launch=context.launch, **sections)
        return LocalSide(facts, Listeners(), (), late, NcclListener())


def own_node(context: Context, side: LocalSide) -> Node:
    """This node as it appears in a snapshot."""
    return Node(context.host, context.launch.node_rank, side.facts)


def own_addresses(interfaces: Fact[tuple[Interface, ...]]) -> frozenset[str]:
    """Every address of this node."""
    if isinstance(interfaces, Missing):
        return frozenset()
    return frozenset(address.address for interface in interfaces for address in interface.addresses)


def with_master(facts: NodeFacts, way: MasterPath) -> NodeFacts:
    """The facts with the node's way to the master and the route it takes."""
    route = Route(way.name, "master", way.source_address, way.interface)
    return replace(facts, master=way, routes=(route,))


class Place(Struct, frozen=True):
    """Where a process stands in a run: the store, its ticket (its number in order of arrival), the run's nonce."""

    store: Store
    ticket: int
    nonce: str
    launch: Launch | None = None  # with the rank that was drawn on arrival; None: as it was before
    served: Store | None = None  # on node 0, where the nodes meet elsewhere: the one that ranks meet in


def arrive(context: Context, store: Store, nonce: bytes) -> Place | Missing:
    """This process has said hello, and has its place in the run."""
    ticket = store.add(keys.TICKETS, 1)
    if isinstance(ticket, Missing):
        return ticket
    launch = _ranked(context.launch, store)
    if isinstance(launch, Missing):
        return launch
    hello = Hello(SCHEMA, TOOL_VERSION, context.host, launch)
    return store.set_document(keys.hello(ticket), encode(hello)) or Place(store, ticket, nonce.hex(), launch)


def _ranked(launch: Launch, store: Store) -> Launch | Missing:
    """The launch with the node rank that is next, where only arrival gives one; more nodes than the job has clash."""
    if launch.node_rank != NOT_RANKED:
        return launch
    drawn = store.add(keys.RANKS, 1)
    if isinstance(drawn, Missing):
        return drawn
    rank = min(drawn, launch.nnodes - 1)
    return replace(launch, node_rank=rank, rank=rank)


def report_facts(place: Place, side: LocalSide, way: MasterPath) -> Missing | None:
    """Node 0 can read this node's facts, and its listeners take callers of this run.

    Facts too large to be accepted are replaced by the reason.
    """
    side.listeners.admit(place.nonce, place.ticket)
    facts = with_master(side.facts, way)
    if place.launch is not None:
        facts = replace(facts, launch=place.launch)
    announce_self(place.store, place.ticket, facts, side.targets)
    message = encode(Report(SCHEMA, TOOL_VERSION, facts, side.targets))
    if len(message) > FACTS_LIMIT_BYTES:
        oversize = Missing("unsupported", f"facts of {len(message)} bytes, {FACTS_LIMIT_BYTES} are accepted")
        slim = replace(facts, code=oversize, environment=oversize)
        message = encode(Report(SCHEMA, TOOL_VERSION, slim, side.targets))
    return place.store.set_document(keys.facts(place.ticket), message)


def report_rank(context: Context, place: Place) -> Missing | None:
    """Node 0 can read what a further rank of a node has in its environment."""
    message = RankReport(SCHEMA, TOOL_VERSION, read_environment(context.environ))
    return place.store.set_document(keys.facts(place.ticket), encode(message))


def follow(
    context: Context, place: Place, side: LocalSide | None, vouch: Vouch = believes_all
) -> Finish | Missing:
    """Do what node 0 orders, step by step, until it says Finish. `side` None: a further rank, which only waits.

    A verdict for which `vouch` has a reason against it is none.
    """
    flags = context.options.flags
    bounds = (
        Bounds(place.ticket, most_ranks=0)
        if side is None
        else bounds_of(place.ticket, context.launch, flags, side.facts)
    )
    reader = OrderReader(place.store, bounds, context.say, vouch)
    while True:
        step = reader.next(context.deadline)
        if isinstance(step, Missing):
            return step
        number, order = step
        if isinstance(order, Finish):
            return order
        if side is not None:
            answer = _perform(context, place, side, order)
            if isinstance(answer, Missing):
                return answer
            if answer is not None:
                place.store.set_document(keys.answer(number, place.ticket), answer)


def _perform(
    context: Context,
    place: Place,
    side: LocalSide,
    order: Reach | Resolve | Measure | Share | Confirm | Bench | Compare | Recount,
) -> bytes | Missing | None:
    """The answer to node 0; Missing if it was lost meanwhile."""
    ticket = place.ticket
    if isinstance(order, Resolve):
        return encode(Resolved(SCHEMA, TOOL_VERSION, resolve(order.name, order.deadline_s)))
    if isinstance(order, Reach):
        peers = _peers_of(order, ticket)
        own = own_addresses(side.facts.interfaces)
        probes = probe_peers(context.host, own, place.nonce, ticket, peers, order.deadline_s)
        routes = routes_to(peers, side.facts.interfaces)
        listens = side.nccl.listening() is not None
        return encode(Probed(SCHEMA, TOOL_VERSION, probes, routes, side.listeners.unanswered(), listens))
    side.nccl.close()  # whoever orders something else has everybody's probes
    if isinstance(order, Measure):
        return measure_here(order, context.host, ProbeGreeting(place.nonce, ticket), side.listeners)
    if isinstance(order, Share):
        return share_here(order, context.options.shared_paths, place.store, place.nonce, ticket)
    if isinstance(order, Recount):
        return recount_here()
    if isinstance(order, Confirm):
        answers = confirm(context, side.library, order.environments.get(str(ticket), ()), order.deadline_s)
        return encode(Confirmed(SCHEMA, TOOL_VERSION, answers))
    if isinstance(order, Compare) and place.served is not None:
        bridge_turns([one.name for one in order.sets], place.store, place.served, context.deadline)
    sets = order.sets if isinstance(order, Compare) else (order,)
    return run_local_bench(context, place.store, ticket, sets)


def _peers_of(order: Reach, ticket: int) -> list[Peer]:
    """Whom this node has to probe."""
    called = order.targets_of.get(str(ticket), ())
    callers: dict[int, list[int]] = {}
    for caller, others in order.targets_of.items():
        for other in others:
            callers.setdefault(other, []).append(int(caller))
    return [peer.for_caller(ticket, callers[peer.ticket]) for peer in order.peers if peer.ticket in called]


def routes_to(peers: Sequence[Peer], interfaces: Fact[tuple[Interface, ...]]) -> tuple[Route, ...]:
    """How the kernel would send to the addresses of each peer; of more than 64 peers, to their first ones."""
    known = () if isinstance(interfaces, Missing) else interfaces
    found = []
    for number, peer in enumerate(peers):
        for target in peer.own if number < ALL_PAIRS_UP_TO else peer.own[:1]:
            source, interface = source_for(target.address, target.port, known)
            found.append(Route(target.address, peer.host, source, interface))
    return tuple(found)


def confirm(
    context: Context, library: Fact[str], environments: tuple[dict[str, str | None], ...], deadline_s: float
) -> tuple[Fact[NcclAnswer], ...]:
    """What the real library chooses under each of the proposed environments."""
    deadline = Deadline(deadline_s)

    def one(settings: dict[str, str | None]) -> Fact[NcclAnswer]:
        if isinstance(library, Missing):
            return library
        reason = first_refusal(settings)
        if reason is not None:
            return Missing("denied", reason)
        environment = {name: value for name, value in context.environ.items() if name not in settings}
        environment |= {name: value for name, value in settings.items() if value is not None}
        return ask(library, environment, max(deadline.left(), 0.5))

    return tuple(one(settings) for settings in environments)
