"""One process of `preflight`, `bench` or `run`, from who it is to how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.rendezvous import placed
from ncclcheck.exchange.messages import Finish
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import load_torch
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.launch.detect import detect
from ncclcheck.measure.remaining import Standing
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import NOT_RANKED, Launch
from ncclcheck.model.report import Verdict
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.conclude import Clock, judge, save, start_clock
from ncclcheck.run.context import Context, Seen, host_name, in_background
from ncclcheck.run.first_node import as_first_node, serves_nobody
from ncclcheck.run.head import run_from_head
from ncclcheck.run.meeting import as_meeting_node
from ncclcheck.run.met_node import as_met_node
from ncclcheck.run.node import LocalSide, local_side, own_addresses, own_node, prepare, release
from ncclcheck.run.options import Ended, RunOptions
from ncclcheck.run.other_node import as_further_rank, as_other_node


def run_session(
    options: RunOptions,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    relayed: Store | None = None,
    show: Callable[[Standing], None] = lambda _: None,
) -> Ended:
    """Run to the end, which comes by the deadline whatever happens. Raises UsageError for an impossible launch.

    `relayed` is the store of a run that somebody else leads, who started this process on its node.
    """
    if options.head is not None:
        return run_from_head(options, options.head, environ, say, show)
    clock = start_clock()
    launch = _place(detect(environ, options.flags, options.line), options)
    # A copy: what this process sets for itself later (torch's log level) is none of the job's environment.
    context = Context(options, dict(environ), launch, host_name(), Deadline(options.timeout_s), say, show)
    seen = Seen()
    interrupted = False
    prepared = prepare(context) if launch.is_agent else None
    try:
        _take_part(context, prepared, seen, relayed)
    except KeyboardInterrupt:
        # mpirun and torchrun end a job as soon as one process has failed: who has the verdict by then, has ended.
        interrupted = seen.verdict is None
        if not seen.snapshot.nodes and prepared is not None and prepared.done():
            seen.snapshot = replace(seen.snapshot, nodes=(own_node(context, prepared.result()),))
    finally:
        if prepared is not None:
            release(prepared)
    ended = _conclude(context, seen, clock, interrupted=interrupted)
    return replace(ended, until_free=partial(_leave, seen, prepared))


def _leave(seen: Seen, prepared: Future[LocalSide] | None) -> None:
    """Node 0 has left the master port, and nothing of the run is left in this process."""
    seen.until_free()
    for store in seen.stores:
        store.close()
    if prepared is not None and prepared.done() and prepared.exception() is None:
        prepared.result().listeners.close()


def _place(launch: Launch, options: RunOptions) -> Launch:
    """The launch, with this node's part in a c10d rendezvous, which only the machine's names and addresses can tell."""
    if launch.node_rank != NOT_RANKED:
        return launch
    if options.meet_in is not None:
        raise UsageError("--meet-in needs to know which node this is: add --node-rank")
    return placed(launch, own_addresses(read_interfaces()))


def _take_part(
    context: Context, prepared: Future[LocalSide] | None, seen: Seen, relayed: Store | None
) -> None:
    launch, folder = context.launch, context.options.meet_in
    if relayed is not None and prepared is not None:
        in_background(load_torch, "torch")
        as_met_node(context, prepared, relayed, seen)
    elif folder is not None and launch.nnodes > 1:
        in_background(load_torch, "torch")
        as_meeting_node(context, prepared, folder, seen)
    elif prepared is None:
        as_further_rank(context, seen)
    elif launch.world_size == 1 and launch.nnodes == 1 and context.options.command == "preflight":
        side = local_side(context, prepared)
        seen.snapshot = Snapshot(
            nodes=(own_node(context, side),), claims=(launch,), claim_hosts=(context.host,)
        )
    elif launch.node_rank == 0:
        if not serves_nobody(context):
            in_background(load_torch, "torch")
        as_first_node(context, prepared, seen)
    else:
        in_background(load_torch, "torch")
        as_other_node(context, prepared, seen)


def _conclude(context: Context, seen: Seen, clock: Clock, *, interrupted: bool) -> Ended:
    is_agent = context.launch.is_agent
    if seen.documents is not None and not interrupted:
        return Ended(*seen.documents, prints=seen.prints, writes=is_agent)
    saved = save(seen.snapshot, context.options, clock, interrupted=interrupted)
    report = judge(saved, context.options)
    if seen.verdict is not None and not interrupted:
        report = replace(report, verdict=_same(report.verdict, seen.verdict))
    prints = is_agent and (seen.prints or interrupted)
    if seen.announce is None:
        return Ended(report, saved, prints, writes=is_agent)
    return Ended(report, saved, prints, partial(seen.announce, report, saved), writes=is_agent)


def _same(own: Verdict, told: Finish) -> Verdict:
    status = {0: "pass", 1: "fail", 4: "fail", 3: "unknown"}.get(told.exit_code, "error")
    return replace(own, status=status, exit_code=told.exit_code, reasons=told.reasons)
