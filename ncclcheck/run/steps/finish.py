"""Finish: the coordinator tells all processes the verdict, once its own report is out, and they leave."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import drawn_tickets, gather_answers
from ncclcheck.exchange.store import keys
from ncclcheck.model.codec import encode
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.session import Session, broadcast_order
from ncclcheck.run.steps.base import Step
from ncclcheck.timeouts import ANSWER_OF_EACH_S, BYE_S


class Finish(Struct, frozen=True, forbid_unknown_fields=True, tag="finish"):
    """The verdict, the same on every node. Whoever follows orders ends with this one."""

    exit_code: int
    reasons: tuple[str, ...]


def _lead(session: Session) -> Snapshot:
    """Write report, snapshot and verdict, and wait for those who are there to have read them."""
    store, state = session.store, session.state
    if state.documents is not None:
        report, saved = state.documents
        if state.is_read:
            store.set_document(keys.SAVED, encode(saved))
            store.set_document(keys.REPORT, encode(report))
        broadcast_order(session, Finish(report.verdict.exit_code, report.verdict.reasons))
        others = set(drawn_tickets(store, session.context.launch)) - {state.own_ticket} - state.gone
        gather_answers(store, others, keys.bye, Deadline(BYE_S + ANSWER_OF_EACH_S * len(others)))
    return session.snapshot


FINISH: Step[Finish, None] = Step(
    "finish",
    BYE_S,
    applies=lambda session: session.state.documents is not None,
    lead=_lead,
    order=Finish,
)
