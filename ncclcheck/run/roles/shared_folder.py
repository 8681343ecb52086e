"""`--meet-in DIR`: the nodes of a run meet in a folder that they share, because TCP between them may not work."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import Future
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.join.knock import KnockListener
from ncclcheck.exchange.join.master import find_master, give_up, unanswered, unmarked
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import loaded_torch
from ncclcheck.exchange.store.shared_folder import FolderClient, job_folder
from ncclcheck.exchange.trust.folder_key import at_master, leave_key
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import MeetingOutcome, MeetingView, Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.coordinator import lead_as_node, tell_verdict
from ncclcheck.run.follow import AT_FIRST
from ncclcheck.run.local_node import LocalNode, local_node, own_node, with_master
from ncclcheck.run.master_store import search_of
from ncclcheck.run.roles.first_node import as_first_node
from ncclcheck.run.roles.further_rank import as_further_rank, as_relayed_rank
from ncclcheck.run.roles.participant import alone, as_participant
from ncclcheck.run.roles.relayed_participant import as_relayed_participant, path_to_master
from ncclcheck.run.session import Joining, Session
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.join import arrive
from ncclcheck.timeouts import FOLDER_ALONE_S, FOLDER_APPEARS_S, FOLDER_OPENS_S, KNOWN_STORE_ANSWERS_S


class _Reached(Struct, frozen=True):
    """What TCP says of node 0. `meets_in`: node 0 waits in its folder, and not in this store."""

    path: MasterPath
    store: Store | None = None
    meets_in: bool = False


class _Meeting(Struct, frozen=True):
    """A node of a run that meets in a folder. `prepared` is what it prepares; node 0 uses the nonce for the run."""

    context: Context
    directory: FolderClient
    state: RunState
    prepared: Future[LocalNode]
    began: float
    nonce: bytes

    def view(self, outcome: MeetingOutcome, waited_s: float, detail: str = "") -> MeetingView:
        """Return what this node saw in the folder."""
        last, ended = self.directory.last, self.directory.ended
        if outcome == "unusable" and ended:
            outcome, detail = "no-helper", ended
        return MeetingView(
            host=self.context.host,
            node_rank=self.context.launch.node_rank,
            path=self.directory.place.folder,
            outcome=outcome,
            detail=detail,
            filesystem=last.filesystem,
            others=last.others,
            waited_s=round(waited_s, 1),
            first=last.first,
            is_open=last.is_open,
        )


def as_meeting_process(
    context: Context, prepared: Future[LocalNode] | None, folder: str, state: RunState
) -> None:
    """Take part in a run that meets in the folder. `prepared` None: a further rank of its node."""
    began = time.monotonic()
    directory = FolderClient(job_folder(folder, context.launch, context.host), context.launch.master_port)
    keeps = False
    try:
        if prepared is None:
            store = directory.open(context.join_deadline())
            if isinstance(store, Missing):
                as_further_rank(context, state)
            else:
                as_relayed_rank(context, store, state)
            return
        meeting = _Meeting(context, directory, state, prepared, began, secrets.token_bytes(16))
        if context.launch.node_rank == 0:
            keeps = _as_first(meeting)
        else:
            _as_participant(meeting)
    finally:
        if not keeps:
            directory.close()


# Node 0


def _as_first(meeting: _Meeting) -> bool:
    """Lead the run; return True if the folder is closed only when the others have the verdict."""
    context, directory, state = meeting.context, meeting.directory, meeting.state
    store = directory.open(context.deadline.within(FOLDER_OPENS_S))
    if isinstance(store, Missing):
        context.say(f"--meet-in {directory.place.folder} cannot be used ({store.detail}): meeting by TCP")
        as_first_node(context, meeting.prepared, state)
        state.snapshot = replace(state.snapshot, meetings=(meeting.view("unusable", 0.0, store.detail),))
        return False
    launch = context.launch
    deadline = context.steps_deadline()
    leave_key(store, context.trust)
    trust = at_master(context.trust, "preflight")
    knocks = None if launch.shared_store else KnockListener(launch.master_port, launch.job_id, trust=trust)
    try:
        store.set(keys.FIRST_HOST, context.host.encode())
        store.set(keys.SERVING, meeting.nonce)
        path, served = path_to_master(context, store, meeting.nonce)
        state.stores += [] if served is None else [served]
        if knocks is not None:
            knocks.serving = served is not None
        views = _Views(served, launch.most_node_ranks)
        joining = Joining(
            context.options.join_timeout_s,
            knocks.final if knocks is not None else dict,
            given_up=views.read,
            names=lambda: {rank: view.host for rank, view in views.read().items()},
        )
        _lead(meeting, Session(context, store, state, deadline, joining), path, views)
    finally:
        if knocks is not None:
            knocks.close()
    return state.announce is not None


def _lead(meeting: _Meeting, session: Session, path: MasterPath, views: _Views) -> None:
    context, state, store = session.context, session.state, session.store
    local = local_node(context, meeting.prepared)
    node = own_node(context, replace(local, facts=with_master(local.facts, path)))
    state.snapshot = Snapshot(nodes=(node,), claims=(context.launch,), claim_hosts=(context.host,))
    participant = arrive(context, store, meeting.nonce)
    if isinstance(participant, Missing):
        view = meeting.view("unusable", 0.0, participant.detail)
        state.snapshot = replace(state.snapshot, viewpoint="one-node", meetings=(view,))
        return
    state.announce = partial(_tell_verdict, meeting, session)
    try:
        lead_as_node(session, replace(participant, local=local, ranks_store=views.served), path)
    finally:
        failed = store.lost  # by a full disk, a mount that went away
        meeting.directory.look()
        has_members = len(state.snapshot.nodes) > 1 or not state.snapshot.silent
        own_view = meeting.view("met" if has_members else "alone", state.arrivals.waited_s)
        if failed is not None and (state.snapshot.silent or state.snapshot.store_lost):
            own_view = meeting.view("unusable", own_view.waited_s, failed.detail)
        state.snapshot = replace(state.snapshot, meetings=(own_view, *views.read().values()))


def _tell_verdict(meeting: _Meeting, session: Session, report: Report, saved: Saved) -> None:
    tell_verdict(session, report, saved)
    meeting.directory.close()


class _Views:
    """What nodes that are not in the folder told node 0 by TCP. State: what was read."""

    def __init__(self, served: Store | None, nnodes: int) -> None:
        self.served, self._nnodes = served, nnodes
        self._known: dict[int, MeetingView] = {}

    def read(self) -> dict[int, MeetingView]:
        """Return them by node rank."""
        for rank in range(1, self._nnodes):
            if self.served is None or rank in self._known:
                continue
            document = self.served.get_document(keys.meeting_view(rank))
            if isinstance(document, Missing):
                continue
            try:
                self._known[rank] = replace(
                    decode(document, MeetingView, limit_bytes=SMALL_LIMIT_BYTES), node_rank=rank
                )
            except DecodeError:
                continue
        return self._known


# The other nodes


def _as_participant(meeting: _Meeting) -> None:
    context, directory, state, prepared = meeting.context, meeting.directory, meeting.state, meeting.prepared
    found = _search(meeting)
    if not isinstance(found, tuple):
        path = as_relayed_participant(context, prepared, found, state)
        # The report that node 0 prints is everybody's; a node that lost it on the way prints its own.
        state.prints = state.verdict is None
        if state.verdict is None and (why := directory.lost()) is not None:
            _lost_folder(meeting, path, why)
        return
    why, tcp = found
    reached = tcp.result() if tcp is not None and tcp.done() and tcp.exception() is None else None
    if reached is not None and reached.store is not None and not reached.meets_in:
        context.say("node 0 does not meet in the folder: joining it by TCP")
        as_participant(context, prepared, state)
        return
    if reached is None:
        deadline = context.deadline.within(KNOWN_STORE_ANSWERS_S)
        path = find_master(search_of(context), deadline, context.say)
        reached = _Reached(replace(path, outcome="lost") if path.outcome == "answered" else path)
    outcome: MeetingOutcome = (
        "unusable" if why.missing != "absent" else "headless" if directory.last.others else "alone"
    )
    view = meeting.view(outcome, time.monotonic() - meeting.began, why.detail)
    view = replace(view, first_node_there=reached.store is not None)
    if reached.store is not None:
        reached.store.set_document(keys.meeting_view(context.launch.node_rank), encode(view))
    elif reached.path.outcome != "lost":
        reached = _Reached(give_up(reached.path, search_of(context)))
    state.snapshot = replace(alone(context, prepared, reached.path), meetings=(view,))


def _lost_folder(meeting: _Meeting, path: MasterPath, why: Missing) -> None:
    """Blame this node's own folder, not node 0, and tell node 0 of it where TCP reaches it."""
    context, state = meeting.context, meeting.state
    view = meeting.view("unusable", time.monotonic() - meeting.began, why.detail)
    first = state.snapshot.lost_first_node
    when = AT_FIRST if first is None else first.when
    for store in state.stores:
        store.set_document(keys.meeting_view(context.launch.node_rank), encode(view))
    seen = alone(context, meeting.prepared, path)
    loss = f"{context.host} lost the folder of --meet-in {when}: {why.detail}"
    state.snapshot = replace(seen, meetings=(view,), store_lost=loss)


def _search(meeting: _Meeting) -> Store | tuple[Missing, Future[_Reached] | None]:
    """Return the run's store in the folder; or why it is not there, and what TCP says of node 0 meanwhile."""
    context, directory = meeting.context, meeting.directory
    began, reached_at = time.monotonic(), 0.0
    tcp: Future[_Reached] | None = None
    deadline = context.join_deadline()
    why = Missing("absent", f"node 0 did not come to {directory.place.folder}")
    for _ in polls(deadline):
        store = directory.open(Deadline(0.0))
        if not isinstance(store, Missing):
            return store
        if store.missing != "absent":
            why = store
            break
        if tcp is None and time.monotonic() - began > FOLDER_ALONE_S:
            context.say(f"node 0 is not in {directory.place.folder} yet ({deadline.left():.0f} s left)")
            tcp = in_background(lambda: _reach(context, deadline), "tcp")
        if tcp is not None and tcp.done() and tcp.exception() is None and tcp.result().store is not None:
            reached_at = reached_at or time.monotonic()
            if not tcp.result().meets_in or time.monotonic() - reached_at > FOLDER_APPEARS_S:
                break
    if tcp is None:
        deadline_tcp = context.join_deadline()
        tcp = in_background(lambda: _reach(context, deadline_tcp), "tcp")
        for _ in polls(deadline_tcp):
            if tcp.done():
                break
    return why, tcp


def _reach(context: Context, deadline: Deadline) -> _Reached:
    search = search_of(context)
    path = find_master(search, deadline, lambda _: None)
    if path.outcome != "answered" or loaded_torch(context.deadline) is not None:
        return _Reached(path)
    store = context.join(path.name, path.port, context.deadline.within(KNOWN_STORE_ANSWERS_S))
    if isinstance(store, Missing):
        return _Reached(unanswered(search, path, store))
    serving = store.wait(keys.SERVING, context.deadline.within(KNOWN_STORE_ANSWERS_S))
    if isinstance(serving, Missing):
        return _Reached(unmarked(search, path, serving))
    return _Reached(path, store, not isinstance(store.get(keys.MEETS_ELSEWHERE), Missing))
