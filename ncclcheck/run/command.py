"""A process of `preflight`, `bench` or `run`, from who it is to how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from msgspec.structs import replace

from ncclcheck.exchange.awake import notice_pauses
from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.rendezvous import placed
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import load_torch
from ncclcheck.exchange.trust.munge import trust_of
from ncclcheck.facts.host.open_files import restore_file_limit
from ncclcheck.facts.network.interfaces import addresses_now
from ncclcheck.facts.network.name_servers import hasten_lookups, silent_servers
from ncclcheck.facts.network.names import host_name
from ncclcheck.launch.detect import detect
from ncclcheck.launch.launchers.plain_variables import refuse_half_given
from ncclcheck.measure.remaining import TimeLeft
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import NOT_RANKED, Launch
from ncclcheck.model.report import STATUS_OF, Verdict
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.judge import RunClock, judge, save, start_clock
from ncclcheck.run.local_node import LocalNode, local_node, own_node, prepare, release
from ncclcheck.run.options import RunOptions, RunResult
from ncclcheck.run.roles.first_node import as_first_node, serves_nobody
from ncclcheck.run.roles.further_rank import as_further_rank
from ncclcheck.run.roles.participant import as_participant
from ncclcheck.run.roles.refused_key import take_no_part
from ncclcheck.run.roles.relayed_participant import as_relayed_participant
from ncclcheck.run.roles.shared_folder import as_meeting_process
from ncclcheck.run.roles.ssh_head import run_from_head
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.finish import Finish


def run_command(
    options: RunOptions,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    relayed: Store | None = None,
    show: Callable[[TimeLeft], None] = lambda _: None,
) -> RunResult:
    """Run to the end, which comes by the deadline whatever happens. Raises UsageError for an impossible launch.

    `relayed` is the store of a run that another process leads, which started this one on its node.
    """
    notice_pauses()
    if options.head is not None:
        if options.refused_key is not None:
            raise UsageError(options.refused_key.why)
        return run_from_head(options, environ, say, show)
    clock = start_clock()
    launch_environ = (
        {} if options.command == "node" else environ
    )  # this node alone, whatever launcher started it
    detected = detect(launch_environ, options.flags, options.line)
    if detected.source == "none":
        refuse_half_given(launch_environ)
    if detected.most_node_ranks > 1 and relayed is None and silent_servers():
        hasten_lookups()  # before the first one
    launch = _place(detected, options)
    # A copy: what this process sets for itself later (torch's log level) is none of the job's environment.
    deadline, trust = Deadline(options.timeout_s), trust_of(options.key, environ, launch)
    context = Context(options, dict(environ), launch, host_name(), deadline, say, show, trust)
    if options.refused_key is not None:
        take_no_part(context, options.refused_key)
        raise UsageError(options.refused_key.why)
    state, interrupted = RunState(), False
    prepared = prepare(context) if launch.is_agent else None
    try:
        _take_part(context, prepared, state, relayed)
    except KeyboardInterrupt:
        # mpirun and torchrun kill all processes once one has failed. A process that has the verdict is not interrupted.
        interrupted = state.verdict is None
        if not state.snapshot.nodes and prepared is not None and prepared.done():
            state.snapshot = replace(state.snapshot, nodes=(own_node(context, prepared.result()),))
    finally:
        if prepared is not None:
            release(prepared)
    state.snapshot = replace(state.snapshot, authentication=context.trust.authentication())
    try:
        ended = _build_result(context, state, clock, interrupted=interrupted)
    except KeyboardInterrupt:  # what was seen is not lost for that
        ended = _build_result(context, state, clock, interrupted=True)
    return replace(ended, until_free=partial(_leave, state, prepared))


def _leave(state: RunState, prepared: Future[LocalNode] | None) -> None:
    """Wait until node 0 has left the master port, and close everything that the run has open in this process."""
    state.until_free()
    for store in state.stores:
        store.close()
    restore_file_limit()
    if prepared is not None and prepared.done() and prepared.exception() is None:
        prepared.result().listeners.close()


def _place(launch: Launch, options: RunOptions) -> Launch:
    """Add this node's part in a c10d rendezvous, which only the machine's names and addresses can tell."""
    if launch.node_rank != NOT_RANKED:
        return launch
    if options.meet_in is not None:
        raise UsageError("--meet-in needs to know which node this is: add --node-rank")
    return placed(launch, addresses_now())


def _take_part(
    context: Context, prepared: Future[LocalNode] | None, state: RunState, relayed: Store | None
) -> None:
    """Take this process's role."""
    launch, folder = context.launch, context.options.meet_in
    checks_itself = context.is_alone and context.options.command in ("preflight", "node") and relayed is None
    has_key = prepared is None and context.trust.key is not None  # a further rank needs no torch then
    if not (checks_itself or has_key or (serves_nobody(context) and relayed is None)):
        in_background(load_torch, "torch")  # it takes seconds: loaded now, no later step waits for it
    if relayed is not None and prepared is not None:
        as_relayed_participant(context, prepared, relayed, state)
    elif folder is not None and launch.nnodes > 1:
        as_meeting_process(context, prepared, folder, state)
    elif prepared is None:
        as_further_rank(context, state)
    elif checks_itself:
        node = own_node(context, local_node(context, prepared))
        state.snapshot = Snapshot(nodes=(node,), claims=(launch,), claim_hosts=(context.host,))
    elif launch.node_rank == 0:
        as_first_node(context, prepared, state)
    else:
        as_participant(context, prepared, state)


def _build_result(context: Context, state: RunState, clock: RunClock, *, interrupted: bool) -> RunResult:
    """Return the report: node 0's where this process has it, else its own with node 0's verdict."""
    is_agent = context.launch.is_agent and state.writes
    if state.documents is not None and not interrupted:
        return RunResult(*state.documents, prints=state.prints, writes=is_agent)
    saved = save(state.snapshot, context.options, clock, interrupted=interrupted)
    report = judge(saved, context.options)
    if state.verdict is not None and not interrupted:
        report = replace(report, verdict=_same(report.verdict, state.verdict))
    prints = is_agent and (state.prints or interrupted)
    if state.announce is None:
        return RunResult(report, saved, prints, writes=is_agent)
    return RunResult(report, saved, prints, partial(state.announce, report, saved), writes=is_agent)


def _same(own_verdict: Verdict, finish: Finish) -> Verdict:
    status = STATUS_OF.get(finish.exit_code, "error")
    return replace(own_verdict, status=status, exit_code=finish.exit_code, reasons=finish.reasons)
