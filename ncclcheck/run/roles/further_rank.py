"""A further rank of a node: reports its environment, waits for the verdict, prints nothing."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.join.master import find_master, give_up
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.trust.folder_key import find_key
from ncclcheck.model.fact import Missing
from ncclcheck.run.context import Context
from ncclcheck.run.master_store import search_of
from ncclcheck.run.roles.participant import enter, has_verdict, leave, lost_verdict, stay_as_further_rank
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.join import arrive
from ncclcheck.run.vouching import with_vouching


def as_further_rank(context: Context, state: RunState) -> None:
    """Take part in a run over TCP; afterwards a verdict is in `state`."""
    state.prints = False
    state.snapshot = replace(state.snapshot, claims=(context.launch,), claim_hosts=(context.host,))
    search = search_of(context)
    participant, path = enter(context, find_master(search, context.join_deadline(), lambda _: None))
    if path.outcome != "answered":
        if context.launch.told != "place":  # node 0 knows ranks: it waits for this one as for an agent
            give_up(path, search)
        state.verdict = Finish(3, (f"rank {context.launch.rank} did not reach node 0: {path.outcome}",))
        return
    if isinstance(participant, Missing):
        state.verdict = lost_verdict(context)
        return
    state.stores.append(participant.store)
    stay_as_further_rank(with_vouching(participant, path, state), state)


def as_relayed_rank(context: Context, store: Store, state: RunState) -> None:
    """Take part in a run that meets elsewhere; afterwards a verdict is in `state`."""
    state.prints = False
    nonce = store.wait(keys.SERVING, context.join_deadline())
    find_key(store, context.trust)
    participant = nonce if isinstance(nonce, Missing) else arrive(context, store, nonce)
    if isinstance(participant, Missing):
        reason = f"rank {context.launch.rank} did not meet node 0: {participant.detail}"
        state.verdict = Finish(3, (reason,))
        return
    has_verdict(participant, state)
    leave(participant, state, reads=context.options.applies and context.options.wants_documents)
