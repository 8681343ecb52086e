"""The other processes of a run: find node 0, do what it orders, leave with its verdict or an own diagnosis."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.join.master import MasterSearch, find_master, give_up
from ncclcheck.exchange.join.verdict import VerdictAsker
from ncclcheck.exchange.messages import REPORT_LIMIT_BYTES, Finish
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import join, loaded_torch, torch_word
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.context import Context, Seen
from ncclcheck.run.node import (
    LocalSide,
    Place,
    arrive,
    follow,
    local_side,
    own_addresses,
    own_node,
    report_facts,
    report_rank,
    with_master,
)
from ncclcheck.run.vouching import Vouch, belongs_to_verdict, vouch_of

SPEAKS_S = 12.0
GONE_S = 15.0  # node 0 waits 2 s for others to leave, and may have large files to write


def as_other_node(context: Context, prepared: Future[LocalSide], seen: Seen) -> None:
    """The verdict of node 0 is in `seen`; or, where it could not be had, what this node saw by itself."""
    search = search_of(context)
    join_deadline = context.deadline.within(context.options.join_timeout_s)
    way = find_master(search, join_deadline, context.say)
    place, way = _enter(context, way)
    if way.outcome != "answered":
        alone(context, prepared, give_up(way, search), seen)
        return
    if isinstance(place, Missing):
        lost(context, prepared, way, place, seen)
        return
    seen.stores.append(place.store)
    if place.launch is not None:
        context = replace(context, launch=place.launch)
    side = local_side(context, prepared)
    place, vouch = _vouching(context, place, way, seen)
    report_facts(place, side, way)
    context.say(f"joined node 0 at {way.name}:{way.port}; waiting for the other nodes")
    ended = follow(context, place, side, vouch)
    if isinstance(ended, Missing):
        lost(context, prepared, way, ended, seen)
        return
    seen.prints = False
    seen.verdict = ended
    alone(context, prepared, way, seen)
    fetch_documents(context, place, seen)
    seen.until_free = partial(until_gone, context, place.store)


def as_further_rank(context: Context, seen: Seen) -> None:
    """A process that is not its node's agent: reports its environment, waits for the verdict, prints nothing."""
    seen.prints = False
    seen.snapshot = replace(seen.snapshot, claims=(context.launch,), claim_hosts=(context.host,))
    search = search_of(context)
    way = find_master(search, context.deadline.within(context.options.join_timeout_s), lambda _: None)
    place, way = _enter(context, way)
    if way.outcome != "answered":
        seen.verdict = Finish(3, (f"rank {context.launch.rank} did not reach node 0: {way.outcome}",))
        return
    if not isinstance(place, Missing):
        seen.stores.append(place.store)
        place, vouch = _vouching(context, place, way, seen)
        report_rank(context, place)
        ended = follow(context, place, None, vouch)
        if isinstance(ended, Finish):
            seen.verdict = ended
            if context.options.applies:
                _read_documents(context, place.store, seen)
            say_goodbye(place)
            seen.until_free = partial(until_gone, context, place.store)
            return
    seen.verdict = Finish(3, (f"rank {context.launch.rank} lost node 0 before the verdict",))


def _vouching(context: Context, place: Place, way: MasterPath, seen: Seen) -> tuple[Place, Vouch]:
    """The place with a store that remembers what was sent, and what is asked before a verdict is believed."""
    store = RecordingStore(place.store)
    asker = VerdictAsker(store, place.nonce, place.ticket)
    return replace(place, store=store), vouch_of(context, way, asker, seen)


def until_gone(context: Context, store: Store) -> None:
    """Node 0's process has left the master port, or does not for long; a launcher's own store stays."""
    if context.launch.shared_store:
        return
    for _ in polls(Deadline(GONE_S)):
        store.get(keys.NEVER_SET)
        if store.lost is not None:
            return
    context.say(f"node 0 still holds port {context.launch.master_port} after {GONE_S:.0f} s")


def search_of(context: Context) -> MasterSearch:
    """What this process looks for, and as whom."""
    return MasterSearch(context.launch, context.host, own_addresses(read_interfaces()), context.launch.job_id)


def _enter(context: Context, way: MasterPath) -> tuple[Place | Missing, MasterPath]:
    """This process's place in the run; or Missing, and the outcome says why what answers is not our run's store."""
    launch = context.launch
    if way.outcome != "answered":
        return Missing("absent", "node 0 was not reached"), way
    failed = loaded_torch(context.deadline)
    if failed is not None:
        return failed, replace(way, outcome=torch_word(failed), detail=failed.detail)
    store = join(way.name, way.port, context.prefix, context.deadline.within(SPEAKS_S))
    if isinstance(store, Missing):
        detail = f"something accepts connections there but does not answer as a TCPStore ({store.detail})"
        return store, replace(way, outcome="foreign", detail=detail)
    # The launcher's store is there before node 0's ncclcheck is; a store of our own is marked as soon as it opens.
    patience = context.options.join_timeout_s if launch.shared_store else SPEAKS_S
    serving = store.wait(keys.SERVING, context.deadline.within(patience))
    if isinstance(serving, Missing) and launch.shared_store:
        return serving, replace(
            way, outcome="lost", detail="the launcher's store answers, but node 0 never came"
        )
    if isinstance(serving, Missing):
        detail = f"a TCPStore answers there, but of another program or job ({serving.detail})"
        return serving, replace(way, outcome="foreign", detail=detail)
    return arrive(context, store, serving), way


def alone(context: Context, prepared: Future[LocalSide], way: MasterPath, seen: Seen) -> None:
    """What this node saw by itself is in `seen`."""
    side = local_side(context, prepared)
    side = replace(side, facts=with_master(side.facts, way))
    seen.snapshot = Snapshot(
        nodes=(own_node(context, side),),
        viewpoint="one-node",
        claims=(context.launch,),
        claim_hosts=(context.host,),
    )


def lost(context: Context, prepared: Future[LocalSide], way: MasterPath, why: Missing, seen: Seen) -> None:
    """The same, of a node that had met node 0 and then lost it."""
    detail = f"node 0 was reached and then no more: {why.detail or why.missing}"
    alone(context, prepared, replace(way, outcome="lost", detail=detail), seen)


def fetch_documents(context: Context, place: Place, seen: Seen) -> None:
    """Node 0's own report and snapshot, where this process has files to write; then node 0 may close its store."""
    if context.options.wants_documents:
        _read_documents(context, place.store, seen)
    say_goodbye(place)


def say_goodbye(place: Place) -> None:
    """Node 0 need not wait for this process any more."""
    place.store.set_document(keys.bye(place.ticket), b"1")


def _read_documents(context: Context, store: Store, seen: Seen) -> None:
    report, saved = store.get_document(keys.REPORT), store.get_document(keys.SAVED)
    if isinstance(report, Missing) or isinstance(saved, Missing):
        return
    try:
        documents = (
            decode(report, Report, limit_bytes=REPORT_LIMIT_BYTES),
            decode(saved, Saved, limit_bytes=REPORT_LIMIT_BYTES),
        )
    except DecodeError as error:
        context.say(f"node 0's report could not be read: {error}")
        return
    if belongs_to_verdict(seen, report, documents[0].verdict.exit_code):
        seen.documents = documents
    else:
        context.say("the report in the store is refused: it is not that of node 0's verdict")
