"""The coordinator's side of a run: lead all participants through the steps, then tell them the verdict."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.background import in_background
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.run.follow import follow
from ncclcheck.run.session import Session
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.facts import report_facts
from ncclcheck.run.steps.finish import FINISH
from ncclcheck.run.steps.sequence import STEPS


def lead_as_node(session: Session, participant: Participant, way: MasterPath) -> None:
    """Lead a run whose coordinator is itself one of the nodes, and follows its own orders in the background."""
    session.state.own_ticket = participant.ticket
    report_facts(participant, way)
    in_background(lambda: follow(participant), "follow")
    lead(session)


def lead(session: Session) -> None:
    """Lead all participants through the steps that apply; after each, the session's snapshot has what it found.

    Where node 0 loses its own store, nobody can answer it any more: the run is over, and nobody is silent for that.
    """
    for step in STEPS:
        if session.state.is_over or not step.applies(session):
            continue
        before = session.snapshot
        session.state.snapshot = step.lead(session)
        if session.store.lost is not None and not session.state.is_over:
            session.state.is_over = True
            kept = (
                before if step.answer is not None else session.snapshot
            )  # else partial results are told as such
            why = f"node 0 lost the store of the run {step.when}: {session.store.lost.detail}"
            session.state.snapshot = replace(kept, silent=before.silent, store_lost=why)


def tell_verdict(session: Session, report: Report, saved: Saved) -> None:
    """Tell all participants the verdict, and give them the report for their files."""
    session.state.documents = (report, saved)
    FINISH.lead(session)
