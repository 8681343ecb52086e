"""`--meet-in DIR`: the nodes of a run meet in a folder that they share, because TCP between them may not work."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import Future

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.gather import drawn_tickets, gather_hellos
from ncclcheck.exchange.join.knock import KnockListener
from ncclcheck.exchange.join.master import find_master, give_up
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import join, loaded_torch
from ncclcheck.exchange.store.shared_folder import FolderClient, job_folder
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import MeetingView, Silent, Snapshot
from ncclcheck.run.context import CONCLUDE_S, Context, Seen, in_background
from ncclcheck.run.first_node import announce, as_first_node, lead_arrivals
from ncclcheck.run.lead import Orders, silent_nodes, silent_ranks
from ncclcheck.run.met_node import as_met_node, as_met_rank, way_to_master
from ncclcheck.run.node import LocalSide, arrive, follow, local_side, own_node, report_facts, with_master
from ncclcheck.run.other_node import alone, as_further_rank, as_other_node, search_of

_OPEN_S = (
    9.0  # for the first sign of life of the folder: a call to a mount that hangs takes CALL_S to be given up
)
_PATIENT_S = 3.0  # node 0 is not in the folder: from then on it is looked for by TCP too
_SURE_S = 6.0  # it was reached by TCP and is in its folder: so long another node's files may take to appear
_SPEAKS_S = 6.0


class _Reached(Struct, frozen=True):
    """What TCP says of node 0. `meets_in`: node 0 waits in its folder, and not in this store."""

    way: MasterPath
    store: Store | None = None
    meets_in: bool = False


def as_meeting_node(context: Context, prepared: Future[LocalSide] | None, folder: str, seen: Seen) -> None:
    """One process of a run that meets in the folder; its part is done. `prepared` None: a further rank of its node."""
    began = time.monotonic()
    directory = FolderClient(job_folder(folder, context.launch, context.host), context.launch.master_port)
    keeps = False
    try:
        if prepared is None:
            store = directory.open(context.deadline.within(context.options.join_timeout_s))
            if isinstance(store, Missing):
                as_further_rank(context, seen)
            else:
                as_met_rank(context, store, seen)
        elif context.launch.node_rank == 0:
            keeps = _as_first(context, prepared, directory, seen)
        else:
            _as_other(context, prepared, directory, began, seen)
    finally:
        if not keeps:
            directory.close()


# node 0


def _as_first(context: Context, prepared: Future[LocalSide], directory: FolderClient, seen: Seen) -> bool:
    """Node 0 has led; True if the folder is closed only when the others have the verdict."""
    store = directory.open(context.deadline.within(_OPEN_S))
    if isinstance(store, Missing):
        context.say(f"--meet-in {directory.place.folder} cannot be used ({store.detail}): meeting by TCP")
        as_first_node(context, prepared, seen)
        view = _view(context, directory, "unusable", 0.0, store.detail)
        seen.snapshot = replace(seen.snapshot, meetings=(view,))
        return False
    launch = context.launch
    work = Deadline(context.deadline.left() - min(CONCLUDE_S, context.options.timeout_s / 5))
    knocks = None if launch.shared_store else KnockListener(launch.master_port, launch.job_id)
    try:
        nonce = secrets.token_bytes(16)
        store.set(keys.SERVING, nonce)
        way, served = way_to_master(context, store, nonce)
        seen.stores += [] if served is None else [served]
        if knocks is not None:
            knocks.serving = served is not None
        _lead(context, prepared, directory, store, (way, served), knocks, nonce, seen, work)
    finally:
        if knocks is not None:
            knocks.close()
    return seen.announce is not None


def _lead(
    context: Context,
    prepared: Future[LocalSide],
    directory: FolderClient,
    store: Store,
    master: tuple[MasterPath, Store | None],
    knocks: KnockListener | None,
    nonce: bytes,
    seen: Seen,
    work: Deadline,
) -> None:
    launch, (way, served) = context.launch, master
    side = local_side(context, prepared)
    node = own_node(context, replace(side, facts=with_master(side.facts, way)))
    seen.snapshot = Snapshot(nodes=(node,), claims=(launch,), claim_hosts=(context.host,))
    orders = Orders(store)
    place = arrive(context, store, nonce)
    if isinstance(place, Missing):
        view = _view(context, directory, "unusable", 0.0, place.detail)
        seen.snapshot = replace(seen.snapshot, viewpoint="one-node", meetings=(view,))
        return
    report_facts(place, side, way)
    in_background(lambda: follow(context, replace(place, served=served), side), "follow")
    views = _Views(served, launch.nnodes)
    final_knocks = knocks.final if knocks is not None else dict

    def tell(report: Report, saved: Saved) -> None:
        announce(orders, store, set(drawn_tickets(store, launch)) - {place.ticket}, report, saved)
        directory.close()

    seen.announce = tell
    patience, waited_s = work.within(context.options.join_timeout_s), 0.0
    try:
        arrivals = gather_hellos(
            store, launch, lambda: {*final_knocks(), *views.read()}, patience, context.say
        )
        waited_s = arrivals.waited_s
        silent = silent_nodes(launch, arrivals, final_knocks()) + silent_ranks(arrivals)
        named = tuple(_named(one, views.read()) for one in silent)
        lead_arrivals(context, orders, store, arrivals, named, seen, work)
    finally:
        lost = store.lost  # by a full disk, a mount that went away
        directory.look()
        came = len(seen.snapshot.nodes) > 1 or not seen.snapshot.silent
        own = _view(context, directory, "met" if came else "alone", waited_s)
        if lost is not None and seen.snapshot.silent:
            own = replace(own, outcome="unusable", detail=lost.detail)
        seen.snapshot = replace(seen.snapshot, meetings=(own, *views.read().values()))


class _Views:
    """What nodes that are not in the folder told node 0 by TCP. State: what was read."""

    def __init__(self, served: Store | None, nnodes: int) -> None:
        self._served, self._nnodes = served, nnodes
        self._known: dict[int, MeetingView] = {}

    def read(self) -> dict[int, MeetingView]:
        """By node rank."""
        for rank in range(1, self._nnodes):
            if self._served is None or rank in self._known:
                continue
            told = self._served.get_document(keys.meeting_view(rank))
            if isinstance(told, Missing):
                continue
            try:
                self._known[rank] = replace(
                    decode(told, MeetingView, limit_bytes=SMALL_LIMIT_BYTES), node_rank=rank
                )
            except DecodeError:
                continue
        return self._known


def _named(silent: Silent, views: dict[int, MeetingView]) -> Silent:
    return replace(silent, host=views[silent.node_rank].host) if silent.node_rank in views else silent


# the others


def _as_other(
    context: Context, prepared: Future[LocalSide], directory: FolderClient, began: float, seen: Seen
) -> None:
    found = _search(context, directory)
    if not isinstance(found, tuple):
        as_met_node(context, prepared, found, seen)
        # The one that node 0 has printed is everybody's; a node that lost it on the way prints its own.
        seen.prints = seen.verdict is None
        return
    why, tcp = found
    reached = tcp.result() if tcp is not None and tcp.done() and tcp.exception() is None else None
    if reached is not None and reached.store is not None and not reached.meets_in:
        context.say("node 0 does not meet in the folder: joining it by TCP")
        as_other_node(context, prepared, seen)
        return
    if reached is None:
        way = find_master(search_of(context), context.deadline.within(_SPEAKS_S), context.say)
        reached = _Reached(replace(way, outcome="lost") if way.outcome == "answered" else way)
    last = directory.last
    outcome = "unusable" if why.missing != "absent" else "headless" if last.others else "alone"
    view = _view(context, directory, outcome, time.monotonic() - began, why.detail)
    view = replace(view, first_node_there=reached.store is not None)
    if reached.store is not None:
        reached.store.set_document(keys.meeting_view(context.launch.node_rank), encode(view))
    elif reached.way.outcome != "lost":
        reached = _Reached(give_up(reached.way, search_of(context)))
    alone(context, prepared, reached.way, seen)
    seen.snapshot = replace(seen.snapshot, meetings=(view,))


def _search(context: Context, directory: FolderClient) -> Store | tuple[Missing, Future[_Reached] | None]:
    """The run's store in the folder; or why it is not there, and what TCP says of node 0 meanwhile."""
    began, reached_at = time.monotonic(), 0.0
    tcp: Future[_Reached] | None = None
    deadline = context.deadline.within(context.options.join_timeout_s)
    why = Missing("absent", f"node 0 did not come to {directory.place.folder}")
    for _ in polls(deadline):
        store = directory.open(Deadline(0.0))
        if not isinstance(store, Missing):
            return store
        if store.missing != "absent":
            why = store
            break
        if tcp is None and time.monotonic() - began > _PATIENT_S:
            context.say(f"node 0 is not in {directory.place.folder} yet ({deadline.left():.0f} s left)")
            tcp = in_background(lambda: _reach(context, deadline), "tcp")
        if tcp is not None and tcp.done() and tcp.exception() is None and tcp.result().store is not None:
            reached_at = reached_at or time.monotonic()
            if not tcp.result().meets_in or time.monotonic() - reached_at > _SURE_S:
                break
    if tcp is None:
        patience = context.deadline.within(context.options.join_timeout_s)
        tcp = in_background(lambda: _reach(context, patience), "tcp")
        for _ in polls(patience):
            if tcp.done():
                break
    return why, tcp


def _reach(context: Context, deadline: Deadline) -> _Reached:
    way = find_master(search_of(context), deadline, lambda _: None)
    if way.outcome != "answered" or loaded_torch(context.deadline) is not None:
        return _Reached(way)
    store = join(way.name, way.port, context.prefix, context.deadline.within(_SPEAKS_S))
    if isinstance(store, Missing):
        return _Reached(replace(way, outcome="foreign", detail=store.detail))
    if isinstance(store.wait(keys.SERVING, context.deadline.within(_SPEAKS_S)), Missing):
        return _Reached(replace(way, outcome="foreign", detail="a TCPStore of another program answers there"))
    return _Reached(way, store, not isinstance(store.get(keys.MEETS_ELSEWHERE), Missing))


def _view(
    context: Context, directory: FolderClient, outcome: str, waited_s: float, detail: str = ""
) -> MeetingView:
    last = directory.last
    return MeetingView(
        context.host,
        context.launch.node_rank,
        directory.place.folder,
        outcome,  # type: ignore[arg-type]
        detail,
        last.filesystem,
        last.others,
        round(waited_s, 1),
    )
