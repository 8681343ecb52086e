"""The steps of a run in their order: its table of contents, and the closed set of orders that a node accepts."""

from __future__ import annotations

from typing import Any, Union

import msgspec

from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, read_message
from ncclcheck.model.errors import DecodeError
from ncclcheck.run.steps.base import Bounds, Step
from ncclcheck.run.steps.bench import BENCH
from ncclcheck.run.steps.compare import COMPARE
from ncclcheck.run.steps.confirm import CONFIRM
from ncclcheck.run.steps.facts import FACTS
from ncclcheck.run.steps.finish import FINISH
from ncclcheck.run.steps.isolate import ISOLATE
from ncclcheck.run.steps.join import JOIN
from ncclcheck.run.steps.late import LATE
from ncclcheck.run.steps.list_code import LIST_CODE
from ncclcheck.run.steps.measure import MEASURE
from ncclcheck.run.steps.reach import REACH
from ncclcheck.run.steps.recount import RECOUNT
from ncclcheck.run.steps.resolve import RESOLVE
from ncclcheck.run.steps.share import SHARE

STEPS: tuple[Step[Any, Any], ...] = (
    JOIN,  # who takes part
    FACTS,  # what every node says of itself
    LIST_CODE,  # where --code differs
    REACH,  # from here on only with two nodes or more, and not with --no-preflight
    MEASURE,
    CONFIRM,
    SHARE,  # --shared-dir
    RESOLVE,  # torch's c10d rendezvous
    COMPARE,  # run
    BENCH,  # bench and run
    ISOLATE,  # isolate
    RECOUNT,  # and which nodes still answer
    LATE,
    FINISH,  # once the report is out
)
ORDER_LIMIT_BYTES = FACTS_LIMIT_BYTES * 16
_STEP_OF: dict[type, Step[Any, Any]] = {step.order: step for step in STEPS if step.order is not None}
_ReceivedOrder = msgspec.defstruct(
    "ReceivedOrder",
    [("schema_version", str), ("tool_version", str), ("order", Union[tuple(_STEP_OF)])],  # noqa: UP007 (made of a list)
    frozen=True,
    forbid_unknown_fields=True,
)


def step_of(order: object) -> Step[Any, Any]:
    """Return the step that an order belongs to."""
    return _STEP_OF[type(order)]


def read_order(data: bytes, bounds: Bounds) -> Any:
    """Return the order in `data`, checked before anything is done, since whoever reaches the store can write one.

    Its kind is one of the closed set, and every field of it has to be within what node 0 itself would ask for. Raises
    DecodeError where it is none, or asks for more.
    """
    received: Any = read_message(data, _ReceivedOrder, ORDER_LIMIT_BYTES)
    step = step_of(received.order)
    reason = next(step.faults(received.order, bounds), None)
    if reason is not None:
        raise DecodeError(f"{step.name}: {reason}")
    return received.order
