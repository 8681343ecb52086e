"""Join: every process says hello, and the coordinator learns which nodes take part and which do not join."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from msgspec.structs import replace

from ncclcheck.checks.registry import all_checks
from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.gather import gather_hellos
from ncclcheck.exchange.join.place import machine_digest, placed_by_arrival
from ncclcheck.exchange.messages import SCHEMA, Hello
from ncclcheck.exchange.own_build import own_build
from ncclcheck.exchange.probe.half_open import half_open
from ncclcheck.exchange.roster import placed, silent_nodes, silent_ranks
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.session import Session
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.timeouts import JOIN_TIMEOUT_S

_MOST_OF_BUILD = 60  # characters that are kept: anybody may say hello

# A participant


def arrive(context: Context, store: Store, nonce: bytes) -> Participant | Missing:
    """Say hello, and return this process's part in the run: with its ticket, and with a rank where it had none."""
    ticket = store.add(keys.TICKETS, 1)
    if isinstance(ticket, Missing):
        return ticket
    detected = context.launch
    # In a shared folder each process without a local rank is a node.
    launch = detected if context.options.meet_in else placed_by_arrival(detected, context.host, store)
    if isinstance(launch, Missing):
        return launch
    run, reads = digest_of(nonce), context.options.wants_documents
    hello = Hello(SCHEMA, own_build(), context.host, launch, run, reads, machine_digest())
    failed = store.set_document(keys.hello(ticket), encode(hello))
    return failed or Participant(
        replace(context, launch=launch), store, ticket, context.trust.nonce_of_probes(nonce)
    )


# The coordinator


def _lead(session: Session) -> Snapshot:
    launch, joining, state = session.context.launch, session.joining, session.state

    def given_up() -> Collection[int]:
        return {*joining.knocks(), *joining.given_up()}

    deadline = session.deadline.within(joining.timeout_s)
    in_background(all_checks, "checks")  # importing them takes a while: done now, no later step waits for it
    look = partial(state.reports.look, session.store)
    say = session.context.say
    state.arrivals = gather_hellos(session.store, launch, given_up, deadline, say, meanwhile=look)
    if session.store.lost is not None and joining.when_lost is not None:
        state.is_over = True
        return joining.when_lost(session.store.lost)
    said_nodes = session.context.options.flags.nnodes
    state.arrivals, uncounted = placed(state.arrivals, joining.knocks(), said_nodes)
    if launch.told == "place":
        uncounted = silent_nodes(launch, state.arrivals, joining.knocks())
    silent = uncounted + silent_ranks(state.arrivals)
    names = joining.names()
    named = tuple(replace(node, host=names.get(node.node_rank, node.host)) for node in silent)
    callers = tuple(sorted(half_open({launch.master_port}))) if silent else ()
    builds = {hello.host: hello.tool_version[:_MOST_OF_BUILD] for hello in state.arrivals.hellos.values()}
    different = builds if len(set(builds.values())) > 1 else {}
    return replace(session.snapshot, silent=named, unanswered_callers=callers, builds=different)


JOIN: Step[None, None] = Step("join", JOIN_TIMEOUT_S, applies=lambda _: True, lead=_lead)
