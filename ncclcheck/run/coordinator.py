"""The coordinator's side of a run: lead all participants through the steps, then tell them the verdict."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.awake import still_s
from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.store import keys
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.doubts import store_changes, with_store_changes
from ncclcheck.run.follow import follow
from ncclcheck.run.session import Session
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.facts import report_facts
from ncclcheck.run.steps.finish import FINISH
from ncclcheck.run.steps.sequence import STEPS

_ERASED = "what node 0 wrote into the store of the run was erased or overwritten"


def lead_as_node(session: Session, participant: Participant, path: MasterPath) -> None:
    """Lead a run whose coordinator is itself one of the nodes, and follows its own orders in the background."""
    session.state.own_ticket = participant.ticket
    report_facts(participant, path)
    in_background(lambda: follow(participant), "follow")
    lead(session)


def lead(session: Session) -> None:
    """Lead all participants through the steps that apply; after each, the session's snapshot has what it found.

    Where node 0 loses its own store, or a stranger erases what it wrote there, nobody can answer it any more: the run
    is over, and nobody is silent for that.
    """
    mark = session.store.get(keys.SERVING)
    session.state.still_before_s = still_s()
    for step in STEPS:
        if session.state.is_over or not step.applies(session):
            continue
        before = session.snapshot
        session.state.snapshot = step.lead(session)
        if session.state.is_over:
            continue
        if session.store.lost is not None:
            last_snapshot = (
                before if step.answer is not None else session.snapshot
            )  # partial results are told as such
            why = f"node 0 lost the store of the run {step.when}: {session.store.lost.detail}"
            _end(session, replace(last_snapshot, silent=before.silent, store_lost=why))
        elif _accuses(before, session.snapshot) and _is_erased(session, mark):
            why = f"{_ERASED} {step.when}: another program writes into it"
            _end(session, replace(before, store_lost=why))


def _is_erased(session: Session, mark: bytes | Missing) -> bool:
    """Return whether the mark of this run, which node 0 wrote before any node joined, is no longer in its store."""
    return not isinstance(mark, Missing) and session.store.get(keys.SERVING) != mark


def _end(session: Session, snapshot: Snapshot) -> None:
    changes = store_changes(session.store, session.context.host)
    session.state.is_over, session.state.snapshot = True, with_store_changes(snapshot, changes)


def _accuses(before: Snapshot, after: Snapshot) -> bool:
    """Return whether the step found a node that did not answer or failed."""
    bench, isolation, matrix = after.bench, after.isolation, after.matrix
    return (
        len(after.silent) > len(before.silent)
        or (not isinstance(bench, Missing) and bool(bench.failures))
        or (not isinstance(isolation, Missing) and bool(isolation.nodes))
        or (not isinstance(matrix, Missing) and any(node.outcome != "slow" for node in matrix.nodes))
    )


def tell_verdict(session: Session, report: Report, saved: Saved) -> None:
    """Tell all participants the verdict, and give them the report for their files."""
    session.state.documents = (report, saved)
    FINISH.lead(session)
