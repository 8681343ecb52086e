"""Confirm: every node asks its real NCCL what it chooses under each environment that may be advised."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.advice.interface import propose
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.order_limits import environment_faults, seconds_faults
from ncclcheck.facts.nccl.nccl_library import ask as ask_library
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer
from ncclcheck.model.snapshot import Confirmation, Snapshot
from ncclcheck.nccl.settable import first_refusal
from ncclcheck.run.session import Session, ask, with_silent
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import ANSWER_S, CONFIRM_S, LEAST_CONFIRM_S


class ConfirmOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="confirm"):
    """Ask the real library under these settings: for each ticket a list of environments."""

    environments: dict[str, tuple[dict[str, str | None], ...]]
    deadline_s: float


class Confirmed(Struct, frozen=True, forbid_unknown_fields=True):
    """What the library chose: an answer per environment, in order."""

    schema_version: str
    tool_version: str
    answers: tuple[Fact[NcclAnswer], ...]


def _lead(session: Session) -> Snapshot:
    """Ask all nodes that were reached; one that does not answer is silent from then on."""
    agents, snapshot = session.state.reached, session.snapshot
    proposals = propose(snapshot)
    seconds = session.deadline.left(CONFIRM_S + ANSWER_S) - ANSWER_S
    if not proposals or seconds < LEAST_CONFIRM_S:
        return snapshot
    environments = {
        str(agent.ticket): tuple(proposal.env_by_host.get(agent.host, {}) for proposal in proposals)
        for agent in agents
    }
    orders = {
        agent.ticket: ConfirmOrder({str(agent.ticket): environments[str(agent.ticket)]}, seconds)
        for agent in agents
    }
    found = ask(session, CONFIRM, orders, agents)
    late = Missing("timeout", f"no answer came in {found.waited_s:.0f} s")
    confirmations: list[Confirmation] = []
    for agent in agents:
        asked = environments[str(agent.ticket)]
        answers = found.accepted[agent.ticket].answers if agent.ticket in found.accepted else ()
        if len(answers) != len(asked):
            answers = (late,) * len(asked)
        confirmations += [
            Confirmation(agent.host, settings, answer)
            for settings, answer in zip(asked, answers, strict=True)
        ]
    return with_silent(replace(snapshot, confirmations=tuple(confirmations)), found.silent(agents, "confirm"))


def _follow(participant: Participant, order: ConfirmOrder) -> Confirmed:
    environ, library = participant.context.environ, participant.node.library
    deadline = Deadline(order.deadline_s)

    def chosen(settings: dict[str, str | None]) -> Fact[NcclAnswer]:
        if isinstance(library, Missing):
            return library
        reason = first_refusal(settings)
        if reason is not None:
            return Missing("denied", reason)
        environment = {name: value for name, value in environ.items() if name not in settings}
        environment |= {name: value for name, value in settings.items() if value is not None}
        return ask_library(library, environment, max(deadline.left(), timeouts.CONFIRM_LEAST_ASK_S))

    environments = order.environments.get(str(participant.ticket), ())
    return Confirmed(SCHEMA, TOOL_VERSION, tuple(chosen(settings) for settings in environments))


def _faults(order: ConfirmOrder, _: Bounds) -> Iterator[str]:
    yield from seconds_faults(order.deadline_s)
    for environments in order.environments.values():
        yield from environment_faults(environments)


CONFIRM = Step(
    "confirm",
    CONFIRM_S + ANSWER_S,
    applies=lambda session: session.measures_network,
    lead=_lead,
    order=ConfirmOrder,
    answer=Confirmed,
    follow=_follow,
    doing="the questions to NCCL",
    faults=_faults,
)
