"""A node that is not the coordinator: joins node 0 by TCP, follows its orders, leaves with its verdict.

A node that cannot join, or loses node 0, reports what it saw by itself.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing
from functools import partial

from msgspec.structs import replace

from ncclcheck.exchange.awake import still_s
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.join.master import find_master, give_up, is_elsewhere, unmarked
from ncclcheck.exchange.join.relay import listen_for_others
from ncclcheck.exchange.messages import REPORT_LIMIT_BYTES
from ncclcheck.exchange.own_build import own_build
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import LostFirstNode, Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.doubts import store_changes, with_own_pause, with_store_changes
from ncclcheck.run.follow import Lost, follow
from ncclcheck.run.local_node import LocalNode, local_node, own_node, with_master
from ncclcheck.run.master_store import join_store, search_of
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.facts import report_facts, report_rank
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.join import arrive
from ncclcheck.run.vouching import belongs_to_verdict, with_vouching
from ncclcheck.timeouts import LEFT_PORT_S, MASTER_CONFIRMED_S, STORE_ANSWERS_S

_MOST_OF_BUILD = 60
_MOST_OF_NAME = 255


def as_participant(context: Context, prepared: Future[LocalNode], state: RunState) -> None:
    """Take part; afterwards node 0's verdict is in `state`, or what this node saw by itself."""
    search = search_of(context)
    path = find_master(search, context.join_deadline(), context.say)
    participant, path = enter(context, path)
    if path.outcome != "answered":
        state.snapshot = alone(context, prepared, give_up(path, search))
        return
    if isinstance(participant, Missing):
        state.snapshot = lost(context, prepared, path, Lost(participant))
        return
    state.stores.append(participant.store)
    context = participant.context
    if not context.launch.is_agent:  # another process of this host joined first
        stay_as_further_rank(with_vouching(participant, path, state), state)
        return
    # Node 0 gave orders before this node joined: it is no member of the run and only gets the verdict.
    is_late = not isinstance(participant.store.get_document(keys.step(0)), Missing)
    if not is_late:
        participant = replace(participant, local=local_node(context, prepared))
    first_host = host_of_first(participant.store)
    participant = with_vouching(participant, path, state)
    _ = report_rank(participant) if is_late else report_facts(participant, path)
    context.say(f"joined node 0 at {path.name}:{path.port}; waiting for the other nodes")
    join_again = partial(context.join, path.name, path.port, context.deadline)
    with closing(listen_for_others(search_of(context), path, join_again)):
        verdict = follow(participant)
    if isinstance(verdict, Lost):
        state.snapshot = lost(context, prepared, path, verdict, first_host)
        changes = store_changes(participant.store, context.host)
        state.snapshot = with_store_changes(with_own_pause(state.snapshot, context.host, still_s()), changes)
        return
    state.prints = False
    state.verdict = verdict
    leave(participant, state, reads=context.options.wants_documents)
    state.snapshot = alone(context, prepared, path)
    state.until_free = partial(until_gone, context, participant.store)


def enter(context: Context, path: MasterPath) -> tuple[Participant | Missing, MasterPath]:
    """Return this process's part in the run; or Missing, and the path says why what answers is not our store."""
    if path.outcome != "answered":
        return Missing("absent", "node 0 was not reached"), path
    store, path = join_store(context, path, STORE_ANSWERS_S)
    if isinstance(store, Missing):
        return store, path
    # The launcher's store is there before node 0's ncclcheck is; a store of our own is marked as soon as it opens.
    timeout_s = context.options.join_timeout_s if context.launch.shared_store else STORE_ANSWERS_S
    serving = store.wait(keys.SERVING, context.deadline.within(min(timeout_s, MASTER_CONFIRMED_S)))
    if isinstance(serving, Missing):
        path, is_over = is_elsewhere(search_of(context), path)
        rest_s = 0.0 if is_over else timeout_s - MASTER_CONFIRMED_S
        serving = store.wait(keys.SERVING, context.deadline.within(rest_s))
    if isinstance(serving, Missing) and context.launch.shared_store:
        return serving, replace(
            path, outcome="lost", detail="the launcher's store answers, but node 0 never came"
        )
    if isinstance(serving, Missing):
        return serving, unmarked(search_of(context), path, serving)
    _tell_of_another_build(context, store)
    return arrive(context, store, serving), path


def _tell_of_another_build(context: Context, store: Store) -> None:
    """Say on standard error where node 0 runs another ncclcheck: what goes wrong later may come of that alone."""
    build = store.get(keys.BUILD)
    theirs = "an older ncclcheck" if isinstance(build, Missing) else f"ncclcheck {build[:_MOST_OF_BUILD]!a}"
    if isinstance(build, Missing) or build != own_build().encode():
        context.say(f"node 0 runs {theirs}, and this node {own_build()}: install the same on every node")


def alone(context: Context, prepared: Future[LocalNode], path: MasterPath) -> Snapshot:
    """Return what this node saw by itself."""
    local = local_node(context, prepared)
    local = replace(local, facts=with_master(local.facts, path))
    own_facts = own_node(context, local)
    return Snapshot((own_facts,), "one-node", claims=(context.launch,), claim_hosts=(context.host,))


def host_of_first(store: Store) -> str:
    """Return the host name of node 0, as it says itself; empty where it does not."""
    name_bytes = store.get(keys.FIRST_HOST)
    name = "" if isinstance(name_bytes, Missing) else name_bytes[:_MOST_OF_NAME].decode(errors="replace")
    return name if name.isprintable() else ""


def lost(
    context: Context, prepared: Future[LocalNode], path: MasterPath, how: Lost, first_host: str = ""
) -> Snapshot:
    """Return the same for a node that joined node 0 and then lost it."""
    detail = f"node 0 was reached and then no more: {how.why.detail or how.why.missing}"
    seen = alone(context, prepared, replace(path, outcome="lost", detail=detail))
    name = context.launch.hosts[0] if context.launch.hosts else first_host
    return replace(seen, lost_first_node=LostFirstNode(name, how.when))


def stay_as_further_rank(participant: Participant, state: RunState) -> None:
    """Wait for node 0's verdict in a run that this process has joined; afterwards it is in `state`."""
    context, state.prints, state.writes = participant.context, False, False
    if has_verdict(participant, state):
        leave(participant, state, reads=context.options.applies)
        state.until_free = partial(until_gone, context, participant.store)


def has_verdict(participant: Participant, state: RunState) -> bool:
    """Report the environment and wait; return whether node 0 told its verdict."""
    report_rank(participant)
    verdict = follow(participant)
    is_told = isinstance(verdict, Finish)
    state.verdict = verdict if isinstance(verdict, Finish) else lost_verdict(participant.context)
    return is_told


def lost_verdict(context: Context) -> Finish:
    """Return the verdict of a further rank that lost node 0."""
    return Finish(3, (f"rank {context.launch.rank} lost node 0 before the verdict",))


def leave(participant: Participant, state: RunState, *, reads: bool) -> None:
    """Read node 0's report and snapshot, where this process has a use for them; then node 0 may close its store."""
    if reads:
        _read_documents(participant, state)
    participant.store.set_document(keys.bye(participant.ticket), b"1")


def _read_documents(participant: Participant, state: RunState) -> None:
    store = participant.store
    report, saved = store.get_document(keys.REPORT), store.get_document(keys.SAVED)
    if isinstance(report, Missing) or isinstance(saved, Missing):
        return
    try:
        documents = (
            decode(report, Report, limit_bytes=REPORT_LIMIT_BYTES),
            decode(saved, Saved, limit_bytes=REPORT_LIMIT_BYTES),
        )
    except DecodeError as error:
        participant.context.say(f"node 0's report could not be read: {error}")
        return
    if belongs_to_verdict(state, report, documents[0].verdict.exit_code):
        state.documents = documents
    else:
        participant.context.say("the report in the store is refused: it is not that of node 0's verdict")


def until_gone(context: Context, store: Store) -> None:
    """Wait until node 0's process has left the master port, though not for long; a launcher's own store stays."""
    if context.launch.shared_store:
        return
    deadline = Deadline(LEFT_PORT_S)
    for _ in polls(deadline):
        store.wait(keys.NEVER_SET, deadline)
        if store.lost is not None:
            return
    context.say(f"node 0 still holds port {context.launch.master_port} after {LEFT_PORT_S:.0f} s")
