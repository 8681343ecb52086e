"""A further rank of a node: reports its environment, waits for the verdict, prints nothing."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from ncclcheck.exchange.join.master import find_master
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.trust.folder_key import find_key
from ncclcheck.model.fact import Missing
from ncclcheck.run.context import Context
from ncclcheck.run.follow import follow
from ncclcheck.run.master_store import search_of
from ncclcheck.run.roles.participant import enter, leave, until_gone
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.facts import report_rank
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.join import arrive
from ncclcheck.run.vouching import with_vouching


def as_further_rank(context: Context, state: RunState) -> None:
    """Take part in a run over TCP; afterwards a verdict is in `state`."""
    state.prints = False
    state.snapshot = replace(state.snapshot, claims=(context.launch,), claim_hosts=(context.host,))
    way = find_master(search_of(context), context.join_deadline(), lambda _: None)
    participant, way = enter(context, way)
    if way.outcome != "answered":
        state.verdict = Finish(3, (f"rank {context.launch.rank} did not reach node 0: {way.outcome}",))
        return
    if isinstance(participant, Missing):
        state.verdict = _lost(context)
        return
    state.stores.append(participant.store)
    participant = with_vouching(participant, way, state)
    if _has_verdict(participant, state):
        leave(participant, state, reads=context.options.applies)
        state.until_free = partial(until_gone, context, participant.store)


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
    _has_verdict(participant, state)
    leave(participant, state, reads=context.options.applies and context.options.wants_documents)


def _has_verdict(participant: Participant, state: RunState) -> bool:
    """Report the environment and wait; return whether node 0 told its verdict."""
    report_rank(participant)
    verdict = follow(participant)
    is_told = isinstance(verdict, Finish)
    state.verdict = verdict if isinstance(verdict, Finish) else _lost(participant.context)
    return is_told


def _lost(context: Context) -> Finish:
    return Finish(3, (f"rank {context.launch.rank} lost node 0 before the verdict",))
