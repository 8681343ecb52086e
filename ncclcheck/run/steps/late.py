"""Late: the last look before the verdict: late nodes, refused orders, and signs of interference."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.awake import still_s
from ncclcheck.exchange.contested import with_late_claims
from ncclcheck.exchange.gather import late_hellos
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.snapshot import Refused, Snapshot, StoodStill
from ncclcheck.run.doubts import store_changes, with_pauses, with_store_changes
from ncclcheck.run.pauses import reported_pauses
from ncclcheck.run.session import Session
from ncclcheck.run.steps.base import Step
from ncclcheck.timeouts import UNTIL_THE_END_S

MOST_TOLD = 8  # refused orders of which a node tells; a stranger may write any number
LONGEST_REASON = 300
_LONGEST_STEP = 40


class OrdersRefused(Struct, frozen=True, forbid_unknown_fields=True):
    """The orders that a node did not follow: what each asked for, and why that is none of node 0's."""

    schema_version: str
    tool_version: str
    orders: tuple[tuple[str, str], ...]


def _lead(session: Session) -> Snapshot:
    changes = store_changes(session.store, session.context.host)  # first: a garbled counter loses the store
    host_of = {agent.ticket: agent.host for agent in session.agents}
    refused = refused_orders(session.store, host_of)
    snapshot = replace(session.snapshot, refused=(*session.snapshot.refused, *refused))
    late = late_hellos(session.store, session.context.launch, session.state.arrivals)
    own_pause = StoodStill(session.context.host, round(still_s() - session.state.still_before_s, 1))
    seen = with_pauses(with_late_claims(snapshot, late), own_pause, reported_pauses(session.store, host_of))
    return with_store_changes(seen, changes)


def refused_orders(store: Store, host_of: Mapping[int, str]) -> tuple[Refused, ...]:
    """Return the orders that the nodes (ticket -> host) refused because node 0 did not write them."""
    refused: list[Refused] = []
    host_at = {keys.refused_orders(ticket): host for ticket, host in host_of.items()}
    for key, data in store.get_documents(tuple(host_at)).items():
        host = host_at[key]
        try:
            refusals = read_message(data, OrdersRefused, SMALL_LIMIT_BYTES).orders
        except DecodeError as error:
            refused.append(Refused(host, "refused orders", str(error)))
            continue
        refused += [
            Refused(host, f"order {step[:_LONGEST_STEP]}", reason[:LONGEST_REASON])
            for step, reason in refusals[:MOST_TOLD]
        ]
    return tuple(refused)


LATE: Step[None, None] = Step("late", UNTIL_THE_END_S, applies=lambda _: True, lead=_lead)
