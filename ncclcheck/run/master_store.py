"""The store at the master address: node 0 serves it, the other nodes join it."""

from __future__ import annotations

import socket

from msgspec.structs import replace

from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.entering import join_at
from ncclcheck.exchange.join.first import Trouble, hold_port, listen, own_path
from ncclcheck.exchange.join.master import MasterSearch
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory_guard import guard_memory
from ncclcheck.exchange.store.opening import hands_over, loaded_torch, serve, serve_with_key, torch_word
from ncclcheck.exchange.store.torch_versions import says_port_in_use
from ncclcheck.facts.host.open_files import raise_file_limit
from ncclcheck.facts.network.interfaces import addresses_now
from ncclcheck.facts.network.names import hanging_files, hangs_text
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterOutcome, MasterPath
from ncclcheck.run.context import Context
from ncclcheck.timeouts import JOIN_LAUNCHER_STORE_S, SERVE_STORE_S

_NOWHERE = Missing("absent", "one node only")
NOT_NEEDED = MasterPath("127.0.0.1", 0, ("127.0.0.1",), True, _NOWHERE, _NOWHERE, "not-needed")


def open_store(context: Context, deadline: Deadline) -> tuple[Store | Missing, MasterPath]:
    """Return the store that node 0 serves at the master address, or the launcher's; and node 0's path to there."""
    launch = context.launch
    if context.is_alone:
        return serve(0, context.prefix, deadline), NOT_NEEDED
    own_addresses = addresses_now()
    naming = in_background(lambda: own_path(launch, own_addresses, deadline), "name")
    if launch.shared_store:
        failed = loaded_torch(deadline)
        patience = deadline.within(JOIN_LAUNCHER_STORE_S)
        store = failed or context.join(launch.master_addr or "", launch.master_port, patience)
        detail = store.detail if isinstance(store, Missing) else ""
        outcome: MasterOutcome = "foreign" if detail else "answered"
        if failed is not None:
            outcome, detail = torch_word(failed), failed.detail
        return store, replace(naming.result(), outcome=outcome, detail=detail)
    served = _serve(context, deadline)
    path = naming.result()
    if isinstance(served, tuple):
        outcome, detail = served
        return Missing("error", detail), replace(path, outcome=outcome, detail=detail)
    return served, replace(path, outcome=keys.SERVING) if launch.nnodes == 1 else path


def _serve(context: Context, deadline: Deadline) -> Store | Trouble:
    if context.trust.key is None and (hanging := hanging_files()):
        return "resolver-hangs", hangs_text(hanging)
    raise_file_limit(context.launch.world_size, context.say)
    held = hold_port(context.launch.master_port)
    if not isinstance(held, socket.socket):
        return held
    if context.trust.key is not None:
        ranks = None if context.options.command == "preflight" else deadline
        keyed = listen(held) or serve_with_key(held, context.trust, context.prefix, ranks)
        return (_outcome_of(keyed), keyed.detail) if isinstance(keyed, Missing) else keyed
    with held:  # the store takes it over
        # Not before torch is there: who connects to a port that listens waits for the store behind it.
        failed = loaded_torch(deadline)
        if failed is not None:
            return torch_word(failed), failed.detail
        trouble = listen(held) if hands_over() else None
        if trouble is not None:
            return trouble
        store = serve(held, context.prefix, deadline.within(SERVE_STORE_S))
    if isinstance(store, Missing):
        return _outcome_of(store), store.detail
    guard_memory(store, context.launch.nnodes)
    return store


def _outcome_of(failed: Missing) -> MasterOutcome:
    return "port-in-use" if says_port_in_use(failed.detail) else "filtered"


def search_of(context: Context) -> MasterSearch:
    """Return the search for node 0, with the identity of this process."""
    own_addresses, job_id = addresses_now(), context.launch.job_id
    return MasterSearch(context.launch, context.host, own_addresses, job_id, trust=context.trust)


def join_store(context: Context, path: MasterPath, deadline_s: float) -> tuple[Store | Missing, MasterPath]:
    """Return the store that answers at the end of the path; where it is none, the path's outcome says so."""
    needs_torch = context.trust.key is None or context.launch.shared_store
    failed = loaded_torch(context.deadline) if needs_torch else None
    if failed is not None:
        return failed, replace(path, outcome=torch_word(failed), detail=failed.detail)
    return join_at(path, search_of(context), context.join, context.deadline.within(deadline_s))
