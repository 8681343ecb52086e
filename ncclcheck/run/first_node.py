"""Node 0 of a run: serve the store, lead the others through the steps, and tell them the verdict."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection
from concurrent.futures import Future

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.gather import Arrivals, drawn_tickets, gather_hellos, late_hellos
from ncclcheck.exchange.join.first import Trouble, confirm_detour, hold_port, listen, own_way
from ncclcheck.exchange.join.knock import FAILED, KnockListener
from ncclcheck.exchange.join.master import names_loopback
from ncclcheck.exchange.join.verdict import Given, VerdictServer
from ncclcheck.exchange.messages import Finish
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import (
    first_line,
    hands_over,
    join,
    loaded_torch,
    serve,
    torch_word,
    within_process,
)
from ncclcheck.exchange.store.recording import RecordingStore, digest_of
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.model.bench import BenchResult, Comparison
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterOutcome, MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Silent, Snapshot
from ncclcheck.run.benching import lead_bench
from ncclcheck.run.comparing import lead_comparison
from ncclcheck.run.context import CONCLUDE_S, Context, Seen, in_background
from ncclcheck.run.elastic import settled
from ncclcheck.run.lead import (
    Member,
    Orders,
    confirm_advice,
    finish,
    one_per_place,
    reach,
    read_members,
    roster,
    silent_nodes,
    silent_ranks,
    with_late_claims,
)
from ncclcheck.run.measuring import measure
from ncclcheck.run.node import (
    LocalSide,
    arrive,
    follow,
    local_side,
    own_addresses,
    own_node,
    report_facts,
    with_master,
)
from ncclcheck.run.order_reader import refused_orders
from ncclcheck.run.recounting import recount
from ncclcheck.run.sharing import share
from ncclcheck.run.vouching import judged_messages
from ncclcheck.run.workers_address import resolve_workers_address

SPEAKS_S = 10.0
SERVE_S = 30.0
DOOMED_JOIN_S = 10.0  # the job cannot start as it is: how long the others may still come, to be diagnosed too
LINGER_S = 3.0
FAILED_LINGER_S = 15.0  # a node that was connected already notices after other_node.SPEAKS_S, and asks then
_NOWHERE = Missing("absent", "one node only")
_NO_WAY = MasterPath("127.0.0.1", 0, ("127.0.0.1",), True, _NOWHERE, _NOWHERE, "not-needed")


def as_first_node(context: Context, prepared: Future[LocalSide], seen: Seen) -> None:
    """Everything that can be seen from node 0 is in `seen`, and the others can be told."""
    launch = context.launch
    alone = launch.world_size == 1 and launch.nnodes == 1
    work = Deadline(context.deadline.left() - min(CONCLUDE_S, context.options.timeout_s / 5))
    knocks = (
        None
        if alone or launch.shared_store
        else KnockListener(launch.master_port, launch.job_id, launch.nnodes)
    )
    try:
        store: Store | Missing
        if serves_nobody(context):
            store, way = within_process(MemoryBackend(), 0), _NO_WAY
        else:
            store, way = _opened(context, knocks, work, alone=alone)
        side = local_side(context, prepared)
        side = replace(side, facts=with_master(side.facts, way))
        seen.snapshot = replace(
            seen.snapshot,
            nodes=(own_node(context, side),),
            claims=(launch,),
            claim_hosts=(context.host,),
        )
        if not isinstance(store, Missing):
            seen.stores.append(store)
            if knocks is not None:
                knocks.serving = True
            _lead(context, store, way, side, knocks, seen, work)
        elif knocks is not None:
            _stand_down(context, knocks, way, seen)
        if isinstance(store, Missing) and context.options.command != "preflight":
            why = Missing("error", f"the ranks have no store to meet in: {store.detail}")
            seen.snapshot = replace(seen.snapshot, bench=why)
    finally:
        if knocks is not None:
            knocks.close()


def _opened(
    context: Context, knocks: KnockListener | None, work: Deadline, *, alone: bool
) -> tuple[Store | Missing, MasterPath]:
    """As `open_store`. The bug that it raises is told to the nodes that ask, so that they do not blame the network."""
    try:
        return open_store(context, work, alone=alone)
    except Exception as error:
        if knocks is not None:
            knocks.given_up = f"{FAILED}{first_line(error)}"
            _await_knocks(context, knocks, FAILED_LINGER_S)
        raise


def _await_knocks(context: Context, knocks: KnockListener, linger_s: float) -> None:
    """The others know why node 0 does not serve, as far as they asked within `linger_s`."""
    for _ in polls(context.deadline.within(linger_s)):
        if len(knocks.final()) >= context.launch.nnodes - 1:
            break


def serves_nobody(context: Context) -> bool:
    """This process is the whole job, and its workers meet by themselves: it needs no TCPStore, so no torch either.

    A comparison gives its workers turns in the store (bench.turns), so `run` needs one.
    """
    launch = context.launch
    return launch.world_size == 1 and launch.nnodes == 1 and context.options.command == "bench"


def open_store(context: Context, work: Deadline, *, alone: bool) -> tuple[Store | Missing, MasterPath]:
    """The store that node 0 serves at the master address, or the launcher's own; and node 0's way to that address."""
    launch = context.launch
    if alone:
        return serve(0, context.prefix, work), _NO_WAY
    own = own_addresses(read_interfaces())
    naming = in_background(lambda: own_way(launch, own, work), "name")
    if launch.shared_store:
        failed = loaded_torch(work)
        store = failed or join(
            launch.master_addr or "", launch.master_port, context.prefix, work.within(SPEAKS_S)
        )
        detail = store.detail if isinstance(store, Missing) else ""
        outcome: MasterOutcome = "foreign" if detail else "answered"
        if failed is not None:
            outcome, detail = torch_word(failed), failed.detail
        return store, replace(naming.result(), outcome=outcome, detail=detail)
    served = _serve(context, work)
    way = naming.result()
    if isinstance(served, tuple):
        outcome, detail = served
        return Missing("error", detail), replace(way, outcome=outcome, detail=detail)
    return served, replace(way, outcome="serving") if launch.nnodes == 1 else way


def _serve(context: Context, work: Deadline) -> Store | Trouble:
    held = hold_port(context.launch.master_port)
    if not isinstance(held, socket.socket):
        return held
    with held:  # the store takes it over
        # Not before torch is there: who connects to a port that listens waits for the store behind it.
        failed = loaded_torch(work)
        if failed is not None:
            return torch_word(failed), failed.detail
        trouble = listen(held) if hands_over() else None
        if trouble is not None:
            return trouble
        store = serve(held, context.prefix, work.within(SERVE_S))
    return (_word(store), store.detail) if isinstance(store, Missing) else store


def _word(failed: Missing) -> MasterOutcome:
    return "port-in-use" if "EADDRINUSE" in failed.detail or "in use" in failed.detail else "filtered"


def _stand_down(context: Context, knocks: KnockListener, way: MasterPath, seen: Seen) -> None:
    """Node 0 cannot serve: for a moment tell the nodes that ask, so that they need not wait, and note who asked."""
    knocks.given_up = f"its store cannot be served: {way.detail}"
    linger_s = LINGER_S + (
        timeouts.MASTER_SYN_S if way.outcome == "filtered" else 0.0
    )  # the others find out for themselves
    _await_knocks(context, knocks, linger_s)
    silent = tuple(
        Silent(knock.host, rank, "join", linger_s, knock) for rank, knock in knocks.final().items()
    )
    seen.snapshot = replace(seen.snapshot, silent=silent)


def _lead(
    context: Context,
    store: Store,
    way: MasterPath,
    side: LocalSide,
    knocks: KnockListener | None,
    seen: Seen,
    work: Deadline,
) -> None:
    launch = context.launch
    nonce = secrets.token_bytes(16)
    store = RecordingStore(store)
    confirms = _confirming(store, nonce) if launch.world_size > 1 or launch.nnodes > 1 else None
    store.set(keys.SERVING, nonce)
    way = confirm_detour(way, context.prefix, nonce, work)
    orders = Orders(store)
    place = arrive(context, store, nonce)
    if isinstance(place, Missing):
        if confirms is not None:
            confirms.close()
        return
    report_facts(place, side, way)
    in_background(lambda: follow(context, place, side), "follow")

    doomed = way.outcome not in ("serving", "answered", "not-needed", "loopback") or names_loopback(way)
    patience = (
        min(context.options.join_timeout_s, DOOMED_JOIN_S) if doomed else context.options.join_timeout_s
    )
    final_knocks = knocks.final if knocks is not None else dict

    def tell(report: Report, saved: Saved) -> None:
        if confirms is not None:
            read = judged_messages(store.read)
            confirms.give(Given(report.verdict.exit_code, digest_of(encode(report)), read))
        try:
            others = set(drawn_tickets(store, launch)) - {place.ticket}
            announce(orders, store, others, report, saved)
        finally:
            if confirms is not None:
                confirms.close()

    seen.announce = tell
    arrivals = gather_hellos(store, launch, final_knocks, work.within(patience), context.say)
    if store.lost is not None:
        _out_of_touch(context, store.lost, side, way, seen)
        return
    silent = silent_nodes(launch, arrivals, final_knocks()) + silent_ranks(arrivals)
    lead_arrivals(context, orders, store, arrivals, silent, seen, work)


def _confirming(store: Store, nonce: bytes) -> VerdictServer | None:
    """Where the others ask node 0 itself for its verdict; None where no port can be had, and then nobody starts."""
    try:
        server = VerdictServer(nonce.hex())
    except OSError:
        return None
    store.set(keys.VERDICT_PORT, str(server.port).encode())
    return server


def lead_arrivals(
    context: Context,
    orders: Orders,
    store: Store,
    arrivals: Arrivals,
    silent: tuple[Silent, ...],
    seen: Seen,
    work: Deadline,
) -> None:
    """Those who came were led through the steps, and what they saw and measured is in `seen`."""
    launch, members = context.launch, roster(arrivals)
    snapshot, targets = read_members(store, members, arrivals, work)
    snapshot = settled(replace(snapshot, silent=snapshot.silent + silent), launch)
    seen.snapshot = snapshot
    reported = {node.host for node in snapshot.nodes}
    agents = tuple(one for one in one_per_place(members) if one.launch.is_agent and one.host in reported)
    if context.options.preflight and len(agents) > 1:
        context.say(f"{len(agents)} of {launch.nnodes} nodes reported; probing the network between them")
        snapshot = _probe(orders, store, agents, targets, snapshot, work)
        snapshot = share(orders, store, agents, context.options.shared_paths, snapshot, work)
        snapshot = resolve_workers_address(orders, store, agents, snapshot, work)
        seen.snapshot = snapshot
    if context.options.command == "run":
        _compare(context, orders, store, agents, seen, work)
    if context.options.command != "preflight":
        snapshot = seen.snapshot

        def keep(partial: BenchResult) -> None:
            seen.snapshot = replace(snapshot, bench=partial)

        bench = lead_bench(context, orders, store, agents, snapshot, work, keep)
        seen.snapshot = replace(snapshot, bench=bench)
    seen.snapshot = recount(orders, store, agents, seen.snapshot, work)
    refused = refused_orders(store, {agent.ticket: agent.host for agent in agents})
    seen.snapshot = replace(seen.snapshot, refused=(*seen.snapshot.refused, *refused))
    seen.snapshot = with_late_claims(seen.snapshot, late_hellos(store, launch, arrivals))


def _compare(
    context: Context,
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    seen: Seen,
    work: Deadline,
) -> None:
    snapshot = seen.snapshot

    def keep(partial: Comparison) -> None:
        seen.snapshot = replace(snapshot, comparison=partial)

    comparison = lead_comparison(context, orders, store, agents, snapshot, work, keep)
    seen.snapshot = replace(snapshot, comparison=comparison)


def _out_of_touch(context: Context, why: Missing, side: LocalSide, way: MasterPath, seen: Seen) -> None:
    """Node 0 has lost its own store, and with it everybody: it reports itself, and that it cannot tell."""
    lost = replace(way, outcome="lost", detail=f"the store that node 0 serves fails: {why.detail}")
    node = own_node(context, replace(side, facts=with_master(side.facts, lost)))
    seen.snapshot = replace(seen.snapshot, nodes=(node,))


def _probe(
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    targets: dict[int, tuple[Target, ...]],
    snapshot: Snapshot,
    work: Deadline,
) -> Snapshot:
    reached = reach(orders, store, agents, targets, work)
    snapshot = reached.added_to(snapshot)
    gone = {one.host for one in reached.silent}
    there = tuple(one for one in agents if one.host not in gone)
    snapshot = measure(orders, store, there, targets, snapshot, work)
    return confirm_advice(orders, store, there, snapshot, work)


def announce(
    orders: Orders,
    store: Store,
    others: Collection[int],
    report: Report,
    saved: Saved,
) -> None:
    """The others have the verdict, and the report for their files."""
    store.set_document(keys.SAVED, encode(saved))
    verdict = Finish(report.verdict.exit_code, report.verdict.reasons)
    finish(orders, store, others, verdict, encode(report))
