"""A node of a run that meets elsewhere than at the master address: over ssh, or in a shared folder.

The path to the master is taken all the same, since the job will take it: it is proven or its fault is named, but
nothing of the run itself depends on it, except for the ranks of a benchmark.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from msgspec.structs import replace

from ncclcheck.exchange.announcements import FirstNode, tell_of_first_node
from ncclcheck.exchange.join.first import confirm_detour
from ncclcheck.exchange.join.knock import FAILED
from ncclcheck.exchange.join.master import find_master
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import first_line, loaded_torch
from ncclcheck.exchange.trust.folder_key import at_master, find_key
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.run.context import Context
from ncclcheck.run.follow import Lost, follow
from ncclcheck.run.local_node import LocalNode, local_node
from ncclcheck.run.master_store import join_store, open_store, search_of
from ncclcheck.run.roles.participant import alone, host_of_first, leave, lost, until_gone
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.facts import report_facts
from ncclcheck.run.steps.join import arrive
from ncclcheck.timeouts import KNOWN_STORE_ANSWERS_S, MASTER_DOWN_S, MASTER_UP_S


def as_relayed_participant(
    context: Context, prepared: Future[LocalNode], store: Store, state: RunState
) -> MasterPath:
    """Take part; afterwards the coordinator's verdict is in `state`, or what this node saw by itself.

    Return this node's path to the master, as it was before anything was lost.
    """
    state.prints = False
    nonce = store.wait(keys.SERVING, context.join_deadline())
    if isinstance(nonce, Missing):
        nowhere = _nowhere(context, nonce.detail)
        state.snapshot = alone(context, prepared, nowhere)
        return nowhere
    find_key(store, context.trust)
    path, at_master = path_to_master(context, store, nonce)
    is_first = context.launch.node_rank == 0
    state.stores += [] if at_master is None else [at_master]
    participant = arrive(context, store, nonce)
    local = local_node(context, prepared)
    if isinstance(participant, Missing):
        state.snapshot = lost(context, prepared, path, Lost(participant))
        return path
    participant = replace(participant, local=local, ranks_store=at_master if is_first else None)
    first_host = host_of_first(store)
    report_facts(participant, path)
    verdict = follow(participant)
    if isinstance(verdict, Lost):
        state.snapshot = lost(context, prepared, path, verdict, first_host)
        return path
    state.verdict = verdict
    state.snapshot = alone(context, prepared, path)
    leave(participant, state, reads=context.options.wants_documents)
    if at_master is not None and not is_first:
        state.until_free = partial(until_gone, context, at_master)
    return path


def path_to_master(context: Context, store: Store, nonce: bytes) -> tuple[MasterPath, Store | None]:
    """Return this node's path to the master address, and the store there, which node 0 serves as long as it may."""
    context = replace(context, trust=at_master(context.trust, context.options.command))
    if context.launch.node_rank == 0:
        return _serve(context, store, nonce)
    document = store.wait_document(keys.FIRST_NODE, context.join_deadline())
    try:
        first = (
            None if isinstance(document, Missing) else read_message(document, FirstNode, SMALL_LIMIT_BYTES)
        )
    except DecodeError:
        first = None
    if first is not None and first.has_failed:
        return _nowhere(context, f"node 0 says: {first.detail}"), None
    serving = first is not None and first.serving
    search = replace(search_of(context), serving=serving)
    deadline = context.deadline.within(MASTER_UP_S if serving else MASTER_DOWN_S)
    path = find_master(search, deadline, context.say)
    return _speak(context, path, nonce) if path.outcome == "answered" else (path, None)


def _nowhere(context: Context, detail: str) -> MasterPath:
    """Return the path of a node that was not told where the run is."""
    launch, unknown = context.launch, Missing("absent", "not tried")
    return MasterPath(
        launch.master_addr or "", launch.master_port, unknown, False, unknown, unknown, "lost", detail
    )


def _serve(context: Context, store: Store, nonce: bytes) -> tuple[MasterPath, Store | None]:
    deadline = context.steps_deadline()
    try:
        served, path = open_store(context, deadline)
    except Exception as error:  # a bug: the others need not wait at the master address
        detail = f"{FAILED}{first_line(error)}"
        tell_of_first_node(store, serving=False, detail=detail, has_failed=True)
        raise
    if isinstance(served, Missing):
        tell_of_first_node(store, serving=False, detail=served.detail)
        return path, None
    served.set(
        keys.MEETS_ELSEWHERE, b"1"
    )  # before it is told from a foreign one: nobody may wait here for orders
    served.set(keys.SERVING, nonce)
    store.port = served.port
    tell_of_first_node(store, serving=True, detail="")
    return confirm_detour(path, context.join, nonce, deadline), served


def _speak(context: Context, path: MasterPath, nonce: bytes) -> tuple[MasterPath, Store | None]:
    """Return the path, "answered" only if it is this run's node 0 that answers there."""
    if context.trust.key is None:
        loaded_torch(context.deadline)  # before the time for the store begins
    deadline = context.deadline.within(KNOWN_STORE_ANSWERS_S)
    store, path = join_store(context, path, KNOWN_STORE_ANSWERS_S)
    if isinstance(store, Missing):
        return path, None
    if context.launch.shared_store or store.wait(keys.SERVING, deadline) == nonce:
        return path, store
    foreign = "a TCPStore answers there, but of another program or job"
    return replace(path, outcome="foreign", detail=foreign), None
