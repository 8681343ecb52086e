"""Facts: every process reports, a node its facts and listeners, a further rank its environment."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.announcements import announce_self
from ncclcheck.exchange.contested import of_another_run, replaced_reports, without_ghosts
from ncclcheck.exchange.early_reports import EarlyReports
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, SCHEMA, TOOL_VERSION, read_message
from ncclcheck.exchange.node_report import read_common, report_message
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.roster import Member, one_per_place, rank_place, roster
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.facts.kept_environment import read_environment
from ncclcheck.launch.by_hosts import with_place
from ncclcheck.launch.elastic import settled
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath, NodeFacts
from ncclcheck.model.snapshot import Node, RankPlace, Refused, Silent, Snapshot
from ncclcheck.run.local_node import with_master
from ncclcheck.run.session import Session
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.timeouts import ANSWER_S, FACTS_ANSWER_S


class RankReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A further rank of a node: its allow-listed environment."""

    schema_version: str
    tool_version: str
    environment: dict[str, str]


# A participant


def report_facts(participant: Participant, path: MasterPath) -> Missing | None:
    """Report this node's facts, and let its listeners take callers of this run."""
    local, store = participant.node, participant.store
    local.listeners.admit(participant.nonce, participant.ticket)
    facts = replace(with_master(local.facts, path), launch=participant.context.launch)
    message = report_message(facts, local.targets, read_common(store))
    announce_self(store, participant.ticket, facts, local.targets, digest_of(message))
    return store.set_document(keys.facts(participant.ticket), message)


def report_rank(participant: Participant) -> Missing | None:
    """Report what a further rank of a node has in its environment."""
    message = RankReport(SCHEMA, TOOL_VERSION, read_environment(participant.context.environ))
    return participant.store.set_document(keys.facts(participant.ticket), encode(message))


# The coordinator


def _lead(session: Session) -> Snapshot:
    state, members = session.state, roster(session.state.arrivals)
    snapshot = settled(read_members(session, members), session.context.launch)
    reported = {node.host for node in snapshot.nodes}
    there = [member for member in one_per_place(members) if member.host in reported]
    state.agents = tuple(member for member in there if member.launch.is_agent)
    state.further = tuple(member for member in there if not member.launch.is_agent)
    return snapshot


def read_members(session: Session, members: tuple[Member, ...]) -> Snapshot:
    """Return the snapshot of what all processes report. Messages that are no facts are refused.

    Where each node listens is in the session's state from then on.
    """
    deadline = session.deadline.within(FACTS_ANSWER_S)
    alien = of_another_run(session.state.arrivals.hellos, session.state.own_ticket)
    expected = [member.ticket for member in members if member.ticket not in alien]
    found = session.state.reports.gather(session.store, expected, deadline)
    members, ghosts = without_ghosts(members, found)
    alien = {member.ticket: alien[member.ticket] for member in members if member.ticket in alien}
    members = tuple(member for member in members if member.ticket not in alien)
    asked = one_per_place(members)
    agents = [member.ticket for member in asked if member.launch.is_agent and member.ticket in found]
    deadline = session.deadline.within(
        ANSWER_S
    )  # who reported has announced: what is absent is late or erased
    announcements = gather_answers(session.store, agents, keys.announced, deadline)
    again = partial(session.state.reports.again, session.store, deadline=deadline)
    found, replaced = replaced_reports(asked, found, announcements, again)
    hellos_refused = {**session.state.arrivals.refused, **alien}.items()
    refused = [Refused(f"ticket-{ticket}", "hello", reason) for ticket, reason in hellos_refused]
    reading = _ReportReader(refused, session.state.reports)
    for member in asked:
        reading.read(member, found.get(member.ticket))
    session.state.targets = reading.targets
    return Snapshot(
        nodes=tuple(reading.nodes),
        ranks=tuple(reading.ranks),
        claims=tuple(member.launch for member in members),
        claim_hosts=tuple(member.host for member in members),
        silent=(*reading.silent, *session.snapshot.silent),
        refused=tuple(reading.refused),
        unanswered_callers=session.snapshot.unanswered_callers,
        contested=(*ghosts, *replaced),
        builds=session.snapshot.builds,
    )


class _ReportReader:
    """The reports that were read so far, the agent of a node before its further ranks; state by design."""

    def __init__(self, refused: list[Refused], reports: EarlyReports) -> None:
        self.refused, self._reports = refused, reports
        self.nodes: list[Node] = []
        self.ranks: list[RankPlace] = []
        self.silent: list[Silent] = []
        self.targets: dict[int, tuple[Target, ...]] = {}
        self._environments: dict[str, dict[str, str]] = {}  # of the agents

    def read(self, member: Member, data: bytes | None) -> None:
        """Store the report of a process; None: it sent nothing."""
        if data is None:
            if member.launch.is_agent:
                self._is_silent(member, FACTS_ANSWER_S)
            return
        try:
            if member.launch.is_agent:
                self._read_node(member, *self._reports.read(member.ticket, data))
            else:
                environment = read_message(data, RankReport, FACTS_LIMIT_BYTES).environment
                agent = self._environments.get(member.host, {})
                self.ranks.append(rank_place(member, environment, agent))
        except DecodeError as error:
            self.refused.append(Refused(member.host, "facts", str(error)))
            if member.launch.is_agent:
                self._is_silent(member, 0.0)

    def _read_node(self, member: Member, facts: NodeFacts, targets: tuple[Target, ...]) -> None:
        facts = with_place(facts, member.launch)
        self.nodes.append(Node(member.host, member.launch.node_rank, facts))
        self.targets[member.ticket] = targets
        if not isinstance(facts.environment, Missing):
            self._environments[member.host] = facts.environment

    def _is_silent(self, member: Member, waited_s: float) -> None:
        self.silent.append(Silent(member.host, member.launch.node_rank, "facts", waited_s))


FACTS: Step[None, None] = Step("facts", FACTS_ANSWER_S, applies=lambda _: True, lead=_lead)
