"""Joining what answers at the master address: the store of this run, or why it is none."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.first import Join
from ncclcheck.exchange.join.master import MasterSearch, is_elsewhere, slow_names, unanswered
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.network.names import hanging_files, hangs_text
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath


def join_at(
    path: MasterPath, search: MasterSearch, join: Join, deadline: Deadline
) -> tuple[Store | Missing, MasterPath]:
    """Return the store that `join` finds at the end of the path; where it is none, the path's outcome says so.

    What is silent at first gets the rest of the time only if node 0 does not say by datagram that it is elsewhere; and
    more of it where a name server of either node is silent, since torch's store waits for that.
    """
    hanging = hanging_files() if search.trust.key is None else ()
    if hanging:
        why = Missing("timeout", hangs_text(hanging))
        return why, replace(path, outcome="resolver-hangs", detail=why.detail)
    store = join(path.name, path.port, deadline.within(timeouts.STORE_SILENT_S))
    if isinstance(store, Missing) and store.missing != "denied":
        path, is_over = is_elsewhere(search, path)
        slow = slow_names(search, path)
        rest = deadline.whole.within(timeouts.STORE_SLOW_NAMES_S) if slow else deadline
        store = store if is_over else join(path.name, path.port, rest)
        if isinstance(store, Missing) and slow and not is_over:
            return store, replace(path, outcome="resolver-slow", detail=slow)
    if not isinstance(store, Missing):
        return store, path
    if store.missing == "denied":
        return store, replace(path, outcome="other-key", detail=store.detail)
    return store, unanswered(search, path, store)
