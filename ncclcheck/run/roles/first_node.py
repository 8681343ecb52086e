"""Node 0, the coordinator of a run over TCP: serves the store, leads the other nodes, tells them the verdict."""

from __future__ import annotations

import secrets
from concurrent.futures import Future
from functools import partial

from msgspec.structs import replace

from ncclcheck.bench.soak.soak_plan import refuse_folder
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.early_reports import EarlyReports
from ncclcheck.exchange.join.first import confirm_detour, is_led_elsewhere
from ncclcheck.exchange.join.knock import FAILED, KnockListener
from ncclcheck.exchange.join.place import draw_local_rank
from ncclcheck.exchange.join.relay import RelayedKnocks
from ncclcheck.exchange.join.verdict import GivenVerdict, serve_verdict
from ncclcheck.exchange.node_report import ReportReader, leave_common
from ncclcheck.exchange.own_build import own_build
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import first_line, store_of_ranks, within_process
from ncclcheck.exchange.store.recording import RecordingStore, digest_of, judged_messages
from ncclcheck.facts.network.name_servers import servers_text, silent_servers
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.formats.addresses import names_this_machine
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Silent, Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.coordinator import lead_as_node, tell_verdict
from ncclcheck.run.local_node import LocalNode, local_node, own_node, with_master
from ncclcheck.run.master_store import NOT_NEEDED, open_store
from ncclcheck.run.roles.participant import as_participant
from ncclcheck.run.session import Joining, Session
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.join import arrive
from ncclcheck.timeouts import DOOMED_JOIN_S, FAILED_STAND_DOWN_S, MASTER_SYN_S, STAND_DOWN_S


def as_first_node(context: Context, prepared: Future[LocalNode], state: RunState) -> None:
    """Lead the run; afterwards everything that node 0 can see is in `state`, and the others can be told."""
    launch, deadline = context.launch, context.steps_deadline()
    knocks = (
        None
        if context.is_alone
        else KnockListener(launch.master_port, launch.job_id, launch.most_node_ranks, context.trust)
    )
    is_second = False
    if knocks is not None:
        knocks.silent_servers, knocks.say = silent_servers(), context.say
    try:
        store, path = _opened(context, knocks, deadline)
        local = local_node(context, prepared)
        local = replace(local, facts=with_master(local.facts, path))
        own_facts, here = own_node(context, local), (context.host,)
        state.snapshot = replace(state.snapshot, nodes=(own_facts,), claims=(launch,), claim_hosts=here)
        if not isinstance(store, Missing):
            state.stores.append(store)
            if knocks is not None:
                knocks.serving = True
            heard = RelayedKnocks(knocks.final if knocks is not None else dict, launch, context.trust)
            joining = Joining(context.options.join_timeout_s, partial(heard.final, store))
            is_second = _lead(Session(context, store, state, deadline, joining), local, path)
        elif knocks is not None:
            state.snapshot = replace(state.snapshot, silent=_stand_down(context, knocks, path))
        if isinstance(store, Missing) and context.options.command in ("bench", "run", "soak"):
            why = Missing("error", f"the ranks have no store to meet in: {store.detail}")
            state.snapshot = replace(state.snapshot, bench=why)
    finally:
        if knocks is not None:
            knocks.close()
    if is_second:  # another process has this place, too: it is told so where the nodes meet
        state.stores.pop().close()
        as_participant(context, prepared, state)


def serves_nobody(context: Context) -> bool:
    """Return whether this process is the whole job, and its workers meet by themselves: it needs no TCPStore.

    Then it needs no torch either. A comparison gives its workers turns in the store (bench.turns), so `run` needs one.
    """
    return context.is_alone and context.options.command in ("bench", "soak")


def _opened(
    context: Context, knocks: KnockListener | None, deadline: Deadline
) -> tuple[Store | Missing, MasterPath]:
    """Open the store, if any. The bug that this raises is told to those that ask: they need not blame the network."""
    try:
        refuse_folder(context.options.bench.soak)
        if serves_nobody(context):
            return within_process(MemoryBackend(), 0), NOT_NEEDED
        return open_store(context, deadline)
    except Exception as error:
        if knocks is not None:
            knocks.given_up, knocks.has_failed = f"{FAILED}{first_line(error)}", True
            knocks.wait_for_all(context.deadline.within(FAILED_STAND_DOWN_S))
        raise


def _stand_down(context: Context, knocks: KnockListener, path: MasterPath) -> tuple[Silent, ...]:
    """Tell the nodes that ask that node 0 cannot serve, so that they need not wait; return who asked."""
    knocks.given_up = f"its store cannot be served: {path.detail}"
    # Where its port is filtered the others find out for themselves, and then ask.
    linger_s = STAND_DOWN_S + (MASTER_SYN_S if path.outcome == "filtered" else 0.0)
    knocks.wait_for_all(context.deadline.within(linger_s))
    return tuple(Silent(knock.host, rank, "join", linger_s, knock) for rank, knock in knocks.final().items())


def _lead(session: Session, local: LocalNode, path: MasterPath) -> bool:
    """Lead the run, and return False; True where another process leads it, at the master address."""
    context, store, nonce = session.context, session.store, secrets.token_bytes(16)
    recording = RecordingStore(store)
    server = None if context.is_alone or context.trust.key else serve_verdict(recording, nonce.hex())
    session.state.reports = EarlyReports(ReportReader(leave_common(recording, local.facts)))
    draw_local_rank(recording, context.host)  # before others can: the first process of a host is its agent
    recording.set(keys.BUILD, own_build().encode())
    recording.set(keys.FIRST_HOST, context.host.encode())
    recording.set(keys.SERVING, nonce)
    path = confirm_detour(path, context.join, nonce, session.deadline)
    timeout_s = context.options.join_timeout_s
    doomed = session.deadline.within(min(timeout_s, DOOMED_JOIN_S))
    is_second = is_led_elsewhere(path, context.join, recording, doomed)
    participant = Missing("absent") if is_second else arrive(context, recording, nonce)
    if isinstance(participant, Missing):
        if server is not None:
            server.close()
        if not is_second:
            session.state.snapshot = _out_of_touch(session, local, path, participant)
        return is_second
    is_doomed = path.outcome not in ("serving", "answered", "not-needed", "loopback") or names_this_machine(
        path.name
    )
    joining = replace(
        session.joining,
        timeout_s=doomed.left() if is_doomed else timeout_s,
        when_lost=partial(_out_of_touch, session, local, path),
    )
    session = replace(session, store=recording, joining=joining)

    def tell(report: Report, saved: Saved) -> None:
        if server is not None:
            read = judged_messages(recording.read)
            digest = digest_of(encode(report)) if session.state.is_read else ""
            server.give(GivenVerdict(report.verdict.exit_code, digest, read))
        try:
            tell_verdict(session, report, saved)
        finally:
            if server is not None:
                server.close()

    session.state.announce = tell
    lead_as_node(session, replace(participant, local=local, ranks_store=store_of_ranks(store)), path)
    return False


def _out_of_touch(session: Session, local: LocalNode, path: MasterPath, why: Missing) -> Snapshot:
    """Return what node 0 reports that lost its own store, and with it all nodes: itself, and that it cannot tell."""
    silent = () if session.context.trust.key is not None else silent_servers()
    lost = replace(path, outcome="lost", detail=f"the store that node 0 serves fails: {why.detail}")
    if silent:
        waits = f"{servers_text(silent)} of this node gave no answer, and torch's store waits for it with each node"
        lost = replace(path, outcome="resolver-slow", detail=waits)
    node = own_node(session.context, replace(local, facts=with_master(local.facts, lost)))
    return replace(session.snapshot, nodes=(node,))
